package semel_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// logOutput is the output of a logger.
type logOutput struct{ bytes.Buffer }

func (l *logOutput) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&l.Buffer, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logOutput) lines() int { return strings.Count(l.String(), "\n") }

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func TestLogEvents_DoubtAndTrouble_AreWarnings(t *testing.T) {
	exhausted := &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: "all 3 attempts failed"}
	refused := func(reason error) error { return &semel.Error{Reason: reason, Operation: pay} }
	for _, c := range []struct {
		event semel.Event
		want  slog.Level
	}{
		{semel.Event{Kind: semel.EventExecuted, EndsCall: true}, slog.LevelDebug},
		{semel.Event{Kind: semel.EventReplayed, EndsCall: true}, slog.LevelDebug},
		{semel.Event{Kind: semel.EventFailed, EndsCall: true, Err: &semel.Failure{Code: "declined"}}, slog.LevelDebug},
		{semel.Event{Kind: semel.EventFailed, EndsCall: true, Err: errors.Join(exhausted, errBoom)}, slog.LevelWarn},
		{semel.Event{Kind: semel.EventFailed, Err: errBoom}, slog.LevelWarn},
		{semel.Event{Kind: semel.EventReleased, EndsCall: true, Err: errBoom}, slog.LevelDebug},
		{semel.Event{Kind: semel.EventReleased, Err: errBoom}, slog.LevelInfo},
		{semel.Event{Kind: semel.EventParked, EndsCall: true, Err: errBoom}, slog.LevelWarn},
		{semel.Event{Kind: semel.EventNotStored, EndsCall: true, Err: refused(semel.ErrLeaseLost)}, slog.LevelWarn},
		{semel.Event{Kind: semel.EventUnprotected, EndsCall: true}, slog.LevelWarn},
		{semel.Event{Kind: semel.EventTakenOver}, slog.LevelInfo},
		{semel.Event{Kind: semel.EventReconciled}, slog.LevelInfo},
		{semel.Event{Kind: semel.EventRefused, EndsCall: true, Err: refused(semel.ErrInProgress)}, slog.LevelDebug},
		{semel.Event{Kind: semel.EventRefused, EndsCall: true, Err: refused(semel.ErrParked)}, slog.LevelDebug},
		{semel.Event{Kind: semel.EventRefused, EndsCall: true, Err: refused(semel.ErrMismatch)}, slog.LevelInfo},
		{semel.Event{Kind: semel.EventRefused, EndsCall: true, Err: refused(semel.ErrUnavailable)}, slog.LevelWarn},
		{semel.Event{Kind: semel.EventRefused, EndsCall: true, Err: refused(store.ErrCorrupt)}, slog.LevelWarn},
	} {
		for _, level := range []slog.Level{c.want, c.want + 1} {
			var out logOutput
			log := semel.LogEvents(slog.New(slog.NewTextHandler(&out.Buffer, &slog.HandlerOptions{Level: level})))
			c.event.Operation, c.event.Took = pay, 1
			log(t.Context(), c.event)
			if logs := level == c.want; logs != contains(out.String(), c.event.Kind) {
				t.Errorf("%s (%v), ends the call %v: at level %v the log is %q", c.event.Kind, c.event.Err, c.event.EndsCall, level, out.String())
			}
		}
	}
}

func TestLogEvents_AnyEvent_HoldsNoKeyOrPayload(t *testing.T) {
	const canary = "canary-4711"
	var out logOutput
	st, advance := newClockedStore()
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		g := guard(t, st, &semel.Options{OnDoubt: policy, Observe: semel.LogEvents(out.logger())})
		for i, h := range []semel.Handler{answer(canary), fail(errBoom), fail(semel.Final(errBoom)), fail(semel.NoEffect(errBoom))} {
			for range 2 {
				call := paying(fmt.Sprintf("%s-%v-%d", canary, policy, i), semel.JSON(canary))
				_, err := g.Run(t.Context(), call, h)
				if err != nil && contains(err.Error(), canary) {
					t.Errorf("the error shows the key or the payload: %v", err)
				}
			}
		}
		advance(time.Minute)
	}
	if out.lines() == 0 || contains(out.String(), canary) {
		t.Errorf("want lines without key and payload; %d lines: %s", out.lines(), out.String())
	}
}
