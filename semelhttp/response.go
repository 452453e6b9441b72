package semelhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/semel-go/semel"
)

// response is the answer of one run of a handler. It buffers the answer until the
// outcome is stored; stream says when it cannot. It follows the rules of
// net/http's own ResponseWriter. While the handler runs, handlerWriter.mu guards
// it.
type response struct {
	cfg       *config
	server    http.ResponseWriter
	request   *http.Request // the handler's
	execution *semel.Execution

	mode        responseMode
	err         error // in mode refused: the error of each write
	mark        outcomeMark
	explanation string // see Explain
	mustBuffer  bool   // it cannot be stored before the handler returns; see stream
	heldFlush   bool   // the handler has flushed, and nothing was sent
	broken      bool   // see Broken
	returned    bool   // the handler has returned
	ended       error  // of the handler's context, when it returned
	status      int    // zero: the handler has not written its header
	declared    int64  // Content-Length; -1: none
	written     int64  // with the part that was refused
	accepted    int64  // the part of written that fits the declared length
	body        []byte
	outerHeader http.Header // the header before the handler ran
	header      http.Header // the header when the handler wrote its status
}

// responseMode says where the bytes go that the handler writes.
type responseMode uint8

const (
	buffering responseMode = iota
	streaming              // the header is sent, and the body goes directly to the server
	refused                // the answer does not count, and writes fail
)

var (
	errReturned = errors.New("semelhttp: write after the handler has returned")
	errHijack   = fmt.Errorf("semelhttp: a request with an idempotency key cannot be hijacked: %w", http.ErrNotSupported)
	errUpgrade  = fmt.Errorf("semelhttp: a request with an idempotency key cannot switch protocols: %w", http.ErrNotSupported)
)

func newResponse(cfg *config, server http.ResponseWriter, x *semel.Execution) *response {
	return &response{cfg: cfg, server: server, execution: x, declared: -1, outerHeader: server.Header().Clone()}
}

func (a *response) writeHeader(status int) {
	if a.mode == refused || a.status != 0 {
		return // superfluous, or too late
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("semelhttp: invalid WriteHeader code %d", status)) // as net/http does
	}
	if status == http.StatusSwitchingProtocols {
		a.refuse(errUpgrade)
		return
	}
	if status < 200 {
		sendInformational(a.server, status) // not the outcome
		return
	}
	h := a.server.Header()
	if v := h["Content-Length"]; len(v) > 0 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			a.declared = n // the server drops a value that is not a number
		}
	}
	a.status = status
	a.header = h.Clone()
}

func write[T []byte | string](a *response, p T) (int, error) {
	if a.mode == refused {
		return 0, a.err
	}
	if a.status == 0 {
		a.writeHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !bodyAllowed(a.status) {
		return 0, http.ErrBodyNotAllowed
	}
	a.written += int64(len(p))
	if a.declared >= 0 && a.written > a.declared {
		return 0, http.ErrContentLength
	}
	a.accepted += int64(len(p))
	if a.mode == buffering && !a.mustBuffer && len(a.body)+len(p) > a.cfg.MaxResponse {
		if err := a.stream(); err != nil {
			return 0, err
		}
	}
	if a.mode == streaming {
		return a.server.Write([]byte(p))
	}
	a.body = append(a.body, p...)
	return len(p), nil
}

func (a *response) flush() error {
	switch {
	case a.mode == refused:
		return a.err
	case !canFlush(a.server):
		return fmt.Errorf("semelhttp: flush: %w", http.ErrNotSupported)
	case a.mode == buffering:
		if a.status == 0 {
			a.writeHeader(http.StatusOK)
		}
		if !a.mustBuffer && !a.cfg.HoldFlush {
			if err := a.stream(); err != nil {
				return err
			}
		}
		if a.mode != streaming {
			a.heldFlush = true
			return nil
		}
	}
	return http.NewResponseController(a.server).Flush()
}

// refuse drops the answer: err is what the handler's writes get.
func (a *response) refuse(err error) {
	a.mode, a.err, a.body = refused, err, nil
}

// finish completes the answer of a handler that has returned, and reports whether
// it was streamed. A handler that wrote nothing has not answered, unless it has
// marked the answer or Options.Judge keeps it: then it means 200, as for net/http.
func (a *response) finish() (streamed bool) {
	a.returned, a.ended = true, a.request.Context().Err()
	if a.status == 0 && a.mode == buffering && (a.ownMark() != unmarked || a.verdict().Effect == Kept) {
		a.writeHeader(http.StatusOK)
	}
	return a.mode == streaming
}

// discard sets the server's header back to its state before the handler ran.
func (a *response) discard() { setHeader(a.server.Header(), a.outerHeader) }

// setHeader makes h equal to from. If they are equal already, it does not touch h.
func setHeader(h, from http.Header) {
	if sameHeader(h, from) {
		return
	}
	clear(h)
	for name, values := range from {
		h[name] = values
	}
}

func sameHeader(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal[[]string]) }

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// canFlush reports whether http.ResponseController.Flush would find a flusher.
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
