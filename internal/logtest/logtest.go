// Package logtest captures the default logger in tests.
package logtest

import (
	"bytes"
	"log"
	"log/slog"
	"sync"
	"testing"
)

// Log is the output of the default logger during a test. Safe for concurrent use, because
// goroutines that the test or an earlier one has left behind may still write to it.
type Log struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Capture captures the log until the end of the test, which must not be parallel.
func Capture(t *testing.T) *Log {
	t.Helper()
	t.Setenv("SEMEL_TEST_CAPTURES_LOG", "1") // fails in a parallel test
	l := &Log{}
	logger, output, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(output) // slog.SetDefault has replaced it, and does not put it back
		log.SetFlags(flags)
	})
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	return l
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// String returns the log since the last Reset.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// Reset forgets the log so far.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Reset()
}
