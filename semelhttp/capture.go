package semelhttp

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/semel-go/semel"
)

// capture is the http.ResponseWriter of one run of a handler. It holds the
// answer back until it is kept; see stream for when it cannot. It treats the
// handler as net/http's own does. A goroutine that the handler has left behind
// cannot write into it.
type capture struct {
	cfg *config
	w   http.ResponseWriter
	r   *http.Request
	x   *semel.Execution

	mu       sync.Mutex
	mode     mode
	err      error // what writes get in mode refused; else nil
	mark     mark
	pinned   bool  // cannot be streamed; see stream
	status   int   // zero: the handler has not written its header
	declared int64 // Content-Length; -1: none
	written  int64
	body     []byte // not shared before the handler has returned, nor changed after
	before   snapshot
	header   snapshot        // at WriteHeader
	room     [2]headerLine   // for header: enough for most answers
	lines    [2]semel.Header // for what is kept of it
}

// mode is what becomes of what the handler writes.
type mode uint8

const (
	buffering mode = iota
	streaming      // the header is sent, and the body goes straight on
	refused        // the answer does not count; writes fail
	returned       // the handler has returned; writes fail
)

var (
	errReturned = errors.New("semelhttp: write after the handler has returned")
	errHijack   = fmt.Errorf("semelhttp: hijacking a request that has an idempotency key: %w", http.ErrNotSupported)
	errUpgrade  = fmt.Errorf("semelhttp: switching protocols on a request that has an idempotency key: %w", http.ErrNotSupported)
)

func (c *capture) begin(cfg *config, w http.ResponseWriter, r *http.Request, x *semel.Execution) {
	c.cfg, c.w, c.r, c.x, c.declared = cfg, w, r, x, -1
	c.before.take(w.Header(), nil)
}

// Header implements http.ResponseWriter. It is the server's own map, so that
// handlers find what was set before them.
func (c *capture) Header() http.Header { return c.w.Header() }

// Unwrap is for http.ResponseController: deadlines and full duplex are the
// server's affair.
func (c *capture) Unwrap() http.ResponseWriter { return c.w }

// WriteHeader implements http.ResponseWriter.
func (c *capture) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeHeader(status)
}

func (c *capture) writeHeader(status int) {
	if c.mode > streaming || c.status != 0 {
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

// Write implements http.ResponseWriter.
func (c *capture) Write(p []byte) (int, error) { return write(c, p) }

// WriteString implements io.StringWriter.
func (c *capture) WriteString(s string) (int, error) { return write(c, s) }

func write[T []byte | string](c *capture, p T) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.mode {
	case returned:
		return 0, errReturned
	case refused:
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

// Flush implements http.Flusher.
func (c *capture) Flush() { _ = c.FlushError() }

// FlushError is Flush for http.ResponseController.
func (c *capture) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mode == returned:
		return errReturned
	case c.mode == refused:
		return c.err
	case !canFlush(c.w):
		return fmt.Errorf("semelhttp: flush: %w", http.ErrNotSupported)
	case c.mode == buffering:
		if c.status == 0 {
			c.writeHeader(http.StatusOK)
		}
		if c.pinned || c.cfg.HoldFlush {
			return nil
		}
		if err := c.stream(); err != nil || c.mode != streaming {
			return err
		}
	}
	return http.NewResponseController(c.w).Flush()
}

// Hijack implements http.Hijacker, and refuses: nobody could tell what was
// answered.
func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errHijack }

// refuse drops the answer. The caller holds mu.
func (c *capture) refuse(err error) {
	c.mode, c.err, c.body = refused, err, nil
}

// handlerReturned ends the answer. It reports whether it was streamed.
func (c *capture) handlerReturned() (streamed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		c.writeHeader(http.StatusOK)
	}
	streamed = c.mode == streaming
	if c.mode != refused {
		c.mode = returned
	}
	return streamed
}

// abandon is for a handler that did not return.
func (c *capture) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = returned
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
