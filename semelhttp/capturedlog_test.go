package semelhttp_test

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"sync"
	"testing"
)

// capturedLog is the output of the default logger during a test. The goroutines that a test or an
// earlier one has left behind may still write to it.
type capturedLog struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// captureLog captures the log until the end of the test, which must not be parallel.
func captureLog(t *testing.T) *capturedLog {
	t.Helper()
	t.Setenv("SEMEL_TEST_CAPTURES_LOG", "1") // fails in a parallel test
	c := &capturedLog{}
	logger, output, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(output) // slog.SetDefault has replaced it, and does not put it back
		log.SetFlags(flags)
	})
	slog.SetDefault(slog.New(slog.NewTextHandler(c, nil)))
	return c
}

func (c *capturedLog) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

// String returns the log since the last Reset.
func (c *capturedLog) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

func (c *capturedLog) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Reset()
}

// Otherwise the lines of later tests would go to the buffer of an earlier one, where nobody
// sees them.
func TestCaptureLog_TestEnds_LogIsAsBefore(t *testing.T) {
	output, flags := log.Writer(), log.Flags()
	defer log.SetOutput(output)
	log.SetOutput(io.Discard)
	var c *capturedLog
	t.Run("captures", func(t *testing.T) {
		if c = captureLog(t); c.String() != "" {
			t.Error("the log is not empty")
		}
		slog.Info("captured")
	})
	slog.Info("not captured")
	if n := bytes.Count([]byte(c.String()), []byte("captured")); n != 1 || log.Writer() != io.Discard || log.Flags() != flags {
		t.Errorf("the log after the end of its test: %q, to %T with the flags %d", c, log.Writer(), log.Flags())
	}
}
