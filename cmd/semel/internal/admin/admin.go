// Package admin serves the health, the readiness and the metrics of a program, apart
// from its own traffic.
package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Handler serves /healthz (the process is alive), /readyz (it can work: ready returns
// nil) and /metrics.
func Handler(ready func(ctx context.Context) error, counts io.WriterTo, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			log.Warn("not ready", "error", err)
			reply(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		reply(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = counts.WriteTo(w) // the scraper may be gone
	})
	return mux
}

func reply(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status}) // the caller may be gone
}

// Limits for the connections of an admin server.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	answerTimeout = 30 * time.Second
	bodyTimeout   = 25 * time.Second // a late body is answered
	maxHeader     = 16 << 10
)

// Server makes a server of the handler, with limits.
func Server(h http.Handler, log *slog.Logger) *http.Server { return server(h, log, bodyTimeout) }

func server(h http.Handler, log *slog.Logger, bodies time.Duration) *http.Server {
	return &http.Server{
		Handler: limitBodies(h, bodies), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: ErrorLog(log),
	}
}

// limitBodies ends the wait for a body that does not come. Without it a client that is refused
// keeps its connection, because net/http reads a part of the body before it sends the answer.
// Server.ReadTimeout would end the streams of open pages, too.
func limitBodies(h http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // a connection without deadlines has no limit
		}
		h.ServeHTTP(w, r)
	})
}
