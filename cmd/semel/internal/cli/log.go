package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// logger writes to standard error, in the form that --json chooses.
func logger(stderr io.Writer, asJSON bool, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(stderr, o))
	}
	return slog.New(slog.NewTextHandler(stderr, o))
}

// adopt has what net/http logs by itself, by package log, and what the client
// of Redis does, go to l, until the function that it returns is called. The
// logs of this process are one stream, and only who owns the process can say so.
func adopt(l *slog.Logger) (end func()) {
	flags, out := log.Flags(), log.Writer()
	log.SetFlags(0)
	log.SetOutput(foundling{l})
	redis.SetLogger(foundling{l})
	return func() {
		log.SetFlags(flags)
		log.SetOutput(out)
		redis.SetLogger(foundling{slog.Default()}) // what it was cannot be asked for
	}
}

// foundling logs each text as a warning.
type foundling struct{ log *slog.Logger }

// Write implements io.Writer. It leaves out what a text quotes: that can be an
// answer of the upstream.
func (f foundling) Write(p []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(p)), " starting with ")
	f.log.Warn(text)
	return len(p), nil
}

// Printf implements the logger of go-redis.
func (f foundling) Printf(ctx context.Context, format string, args ...any) {
	f.log.WarnContext(ctx, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// wrong is a mistake in a flag.
func wrong(flag string, value any, want string) error {
	return &input.Error{Field: flag, Value: fmt.Sprint(value), Want: want}
}

// indent makes text a block that help shows as it is.
func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
