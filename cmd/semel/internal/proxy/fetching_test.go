package proxy

import (
	"bytes"
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
