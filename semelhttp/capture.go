package semelhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/semel-go/semel"
)

// capture is the answer of one run of a handler. It holds the answer back until
// it is kept; see stream for when it cannot. It treats the handler as
// net/http's own does. Until the handler has returned, the loan's lock guards
// it.
type capture struct {
	cfg  *config
	w    http.ResponseWriter
	r    *http.Request
	x    *semel.Execution
	loan *loan

	mode     mode
	err      error // what writes get in mode refused; else nil
	mark     mark
	pinned   bool  // cannot be streamed; see stream
	held     bool  // the handler has flushed, and nothing was sent
	status   int   // zero: the handler has not written its header
	declared int64 // Content-Length; -1: none
	written  int64
	body     []byte // not shared before the handler has returned, nor changed after
	before   snapshot
	header   snapshot      // at WriteHeader
	room     [2]headerLine // for header: enough for most answers
}

// mode is what becomes of what the handler writes.
type mode uint8

const (
	buffering mode = iota
	streaming      // the header is sent, and the body goes straight on
	refused        // the answer does not count; writes fail
)

var (
	errReturned = errors.New("semelhttp: write after the handler has returned")
	errHijack   = fmt.Errorf("semelhttp: hijacking a request that has an idempotency key: %w", http.ErrNotSupported)
	errUpgrade  = fmt.Errorf("semelhttp: switching protocols on a request that has an idempotency key: %w", http.ErrNotSupported)
)

// begin is for a run that answers to w, with its loan. The capture is zero.
func (c *capture) begin(cfg *config, w http.ResponseWriter, l *loan, x *semel.Execution) {
	c.cfg, c.w, c.x, c.loan, c.declared = cfg, w, x, l, -1
	c.before.take(w.Header(), nil)
	l.c, l.w = c, w
}

func (c *capture) writeHeader(status int) {
	if c.mode == refused || c.status != 0 {
		return // superfluous, or too late
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("semelhttp: invalid WriteHeader code %d", status)) // as net/http does
	}
	if status == http.StatusSwitchingProtocols {
		c.refuse(errUpgrade)
		return
	}
	if status < 200 {
		c.w.WriteHeader(status) // informational: it says nothing of the outcome
		return
	}
	h := c.w.Header()
	if v := h["Content-Length"]; len(v) > 0 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			c.declared = n // the server drops what is no number
		}
	}
	c.status = status
	c.header.take(h, c.room[:])
}

func write[T []byte | string](c *capture, p T) (int, error) {
	if c.mode == refused {
		return 0, c.err
	}
	if c.status == 0 {
		c.writeHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !bodyAllowed(c.status) {
		return 0, http.ErrBodyNotAllowed
	}
	c.written += int64(len(p))
	if c.declared >= 0 && c.written > c.declared {
		return 0, http.ErrContentLength
	}
	if c.mode == buffering && !c.pinned && len(c.body)+len(p) > c.cfg.MaxResponse {
		if err := c.stream(); err != nil {
			return 0, err
		}
	}
	if c.mode == streaming {
		return c.w.Write([]byte(p))
	}
	c.body = append(c.body, p...)
	return len(p), nil
}

func (c *capture) flush() error {
	switch {
	case c.mode == refused:
		return c.err
	case !canFlush(c.w):
		return fmt.Errorf("semelhttp: flush: %w", http.ErrNotSupported)
	case c.mode == buffering:
		if c.status == 0 {
			c.writeHeader(http.StatusOK)
		}
		if !c.pinned && !c.cfg.HoldFlush {
			if err := c.stream(); err != nil {
				return err
			}
		}
		if c.mode != streaming {
			c.held = true
			return nil
		}
	}
	return http.NewResponseController(c.w).Flush()
}

// refuse drops the answer.
func (c *capture) refuse(err error) {
	c.mode, c.err, c.body = refused, err, nil
}

// handlerReturned ends the loan and the answer. It reports whether that was
// streamed.
func (c *capture) handlerReturned() (streamed bool) {
	c.loan.over()
	if c.status == 0 {
		c.writeHeader(http.StatusOK)
	}
	return c.mode == streaming
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// canFlush looks for what http.ResponseController.Flush would find.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}
