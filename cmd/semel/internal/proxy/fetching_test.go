package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/semelhttp"
)

// Tokens of strangers, which name unknown keys, must not fill the log during a slow fetch, or
// while the issuer is not reachable.
func TestRefuse_KeySetIsBeingFetched_IsNoWarning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		lines int
	}{
		{fmt.Errorf("%w: %w: %w", semel.ErrUnavailable, scope.ErrUnavailable, scope.ErrFetching), 0},
		{fmt.Errorf("%w: %w: %w", semel.ErrUnavailable, scope.ErrUnavailable, scope.ErrOutdated), 0},
		{fmt.Errorf("%w: %w: %w", semel.ErrUnavailable, scope.ErrUnavailable, errors.New("connection refused")), 1},
	} {
		var log bytes.Buffer
		p := &Proxy{events: slog.New(slog.NewTextHandler(&log, nil))}
		w := httptest.NewRecorder()
		p.refuse(w, httptest.NewRequest("POST", "/pay", nil), semelhttp.Problem{Status: 503, Code: semelhttp.CodeStoreUnavailable, Err: c.err})
		if lines := strings.Count(log.String(), "\n"); lines != c.lines || w.Code != 503 {
			t.Errorf("%v: status %d and %d lines, want %d: %s", c.err, w.Code, lines, c.lines, &log)
		}
	}
}

// Clients hang up every day, and one of them must not fill the log. If the store is down, it
// is a warning, also if the client has left.
func TestRefuse_ClientHangsUp_IsNoWarning(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		err    error
		hungUp bool
		lines  int
	}{
		"while it waits":         {&semel.Error{Reason: semel.ErrCanceled, Cause: context.Canceled}, true, 0},
		"its time is over":       {&semel.Error{Reason: semel.ErrCanceled, Cause: context.DeadlineExceeded}, false, 0},
		"just before the run":    {&semel.Error{Reason: semel.ErrUnavailable, Cause: context.Canceled}, true, 0},
		"a request of the store": {&semel.Error{Reason: semel.ErrUnavailable, Cause: context.Canceled}, false, 1},
		"store down":             {&semel.Error{Reason: semel.ErrUnavailable, Cause: refused}, false, 1},
		"store down, hung up":    {&semel.Error{Reason: semel.ErrUnavailable, Cause: refused}, true, 1},
	} {
		var log bytes.Buffer
		p := &Proxy{events: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		if c.hungUp {
			hangUp()
		}
		r := httptest.NewRequest("POST", "/pay", nil).WithContext(ctx)
		p.refuse(httptest.NewRecorder(), r, semelhttp.Problem{Status: 503, Code: semelhttp.CodeStoreUnavailable, Err: c.err})
		if lines := strings.Count(log.String(), "\n"); lines != c.lines {
			t.Errorf("%s: %d lines, want %d: %s", name, lines, c.lines, &log)
		}
	}
}
