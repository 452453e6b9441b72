package semel_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

type logged struct{ bytes.Buffer }

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&l.Buffer, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logged) lines() int { return strings.Count(l.String(), "\n") }

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func TestEachCallEndsWithOneEvent(t *testing.T) {
	var seen events
	g := guard(t, memstore.New(nil), &semel.Options{Observe: seen.observe})
	_, _ = g.Run(t.Context(), ann("k"), answer("x"))
	_, _ = g.Run(t.Context(), ann("k"), never(t))
	_, _ = g.Run(t.Context(), paying("k", semel.JSON(1)), never(t))
	_, _ = g.Run(t.Context(), ann("f"), fail(semel.Final(errBoom)))
	_, _ = g.Run(t.Context(), ann("f"), never(t))
	_, _ = g.Run(t.Context(), ann("r"), fail(errBoom))
	var kinds []semel.Kind
	for _, e := range seen.all {
		kinds = append(kinds, e.Kind)
		if e.Operation != pay || e.Tenant != "ann" || len(e.Key) != 8 {
			t.Errorf("event %+v", e)
		}
	}
	want := []semel.Kind{semel.EventExecuted, semel.EventReplayed, semel.EventRefused, semel.EventFailed, semel.EventFailureReplayed, semel.EventReleased}
	if len(kinds) != len(want) {
		t.Fatalf("told %v, want %v", kinds, want)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("event %d is %v, want %v", i, kinds[i], want[i])
		}
	}
}

func TestEveryKindHasANameAndTroubleIsLoud(t *testing.T) {
	for k := semel.EventExecuted; k <= semel.EventRecovered; k++ {
		if contains(k.String(), "Kind(") || k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
	if semel.Kind(0).String() != "Kind(0)" || semel.Kind(200).String() != "Kind(200)" {
		t.Error("a kind that is none has a name")
	}
	var out logged
	l := semel.LogEvents(slog.New(slog.NewTextHandler(&out.Buffer, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for k := semel.EventExecuted; k <= semel.EventRecovered; k++ {
		l(t.Context(), semel.Event{Kind: k, Operation: pay, Err: errBoom, Took: 1})
	}
	if out.lines() != 7 || !contains(out.String(), "lease lost") || !contains(out.String(), "error=boom") {
		t.Errorf("warnings:\n%s", out.String())
	}
}
