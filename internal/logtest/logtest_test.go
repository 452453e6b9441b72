package logtest_test

import (
	"io"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/logtest"
)

// Otherwise the lines of later tests would go to the buffer of an earlier one, where nobody
// sees them.
func TestCapture_TestEnds_LogIsAsBefore(t *testing.T) {
	output, flags := log.Writer(), log.Flags()
	defer log.SetOutput(output)
	log.SetOutput(io.Discard)
	var captured *logtest.Log
	t.Run("captures", func(t *testing.T) {
		if captured = logtest.Capture(t); captured.String() != "" {
			t.Error("the log is not empty")
		}
		slog.Info("captured")
	})
	slog.Info("not captured")
	if n := strings.Count(captured.String(), "captured"); n != 1 || log.Writer() != io.Discard || log.Flags() != flags {
		t.Errorf("the log after the end of its test: %q, to %T with the flags %d", captured, log.Writer(), log.Flags())
	}
}

func TestReset_LogIsEmpty(t *testing.T) {
	l := logtest.Capture(t)
	slog.Info("before")
	l.Reset()
	slog.Info("after")
	if text := l.String(); strings.Contains(text, "before") || !strings.Contains(text, "after") {
		t.Errorf("the log is %q", text)
	}
}
