package program

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Logger writes to standard error, in the form that --json chooses.
func Logger(stderr io.Writer, asJSON bool, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(stderr, o))
	}
	return slog.New(slog.NewTextHandler(stderr, o))
}

// CaptureLogs sends the log lines of package log, which net/http uses, and of the
// Redis client to l, so that the process has one log. restore ends that.
func CaptureLogs(l *slog.Logger) (restore func()) {
	flags, out := log.Flags(), log.Writer()
	log.SetFlags(0)
	log.SetOutput(warningWriter{l})
	redis.SetLogger(warningWriter{l})
	return func() {
		log.SetFlags(flags)
		log.SetOutput(out)
		redis.SetLogger(warningWriter{slog.Default()}) // go-redis does not tell which logger it had
	}
}

// warningWriter logs each text as a warning.
type warningWriter struct{ log *slog.Logger }

// Write implements io.Writer. It drops quoted data, because that can be a part of
// an answer.
func (f warningWriter) Write(p []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(p)), " starting with ")
	f.log.Warn(text)
	return len(p), nil
}

// Printf implements the logger of go-redis.
func (f warningWriter) Printf(ctx context.Context, format string, args ...any) {
	f.log.WarnContext(ctx, strings.TrimSpace(fmt.Sprintf(format, args...)))
}
