package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

func startStream(t *testing.T, o *Options, semel bool) *stream {
	t.Helper()
	dir := t.TempDir()
	g := proc.NewGroup(dir)
	t.Cleanup(g.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := openStream(ctx, g, o, pipeline.NewPlan(o.Seed, o.Orders), dir, semel)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEvents_WithoutSemel_HandledTwiceOrLost(t *testing.T) {
	o := &Options{Orders: 200, Clients: 8, Kills: 8, Seed: 1, Program: os.Args[0]}
	s := startStream(t, o, false)
	var told bytes.Buffer
	f, err := s.run(t.Context(), o, &told)
	if err != nil {
		t.Fatal(err)
	}
	if f.DoubleCharges == 0 || f.Lost == 0 || f.Stuck != 0 || f.Refused != 0 || f.Samples == 0 || f.Replays == 0 {
		t.Errorf("got %+v", f)
	}
	if f.Kills != 8 || f.InFlightAtKills < 8 || f.CutBeforeCharge+f.CutAfterCharge < 8 {
		t.Errorf("%d kills with %d in flight, and %d and %d handlers at work", f.Kills, f.InFlightAtKills, f.CutBeforeCharge, f.CutAfterCharge)
	}
	if f.Charges != 200-f.Lost+f.DoubleCharges || f.Sent != s.plan.Messages || f.Duplicates != f.Sent-200 {
		t.Errorf("got %+v", f)
	}
	if got := told.String(); !strings.Contains(got, "without Semel  100%") || !strings.Contains(got, "kills 8") {
		t.Errorf("told: %s", got)
	}
}

func TestEvents_WithSemel_TakeEffectOnce(t *testing.T) {
	o := &Options{Orders: 200, Clients: 8, Kills: 8, Seed: 1, Program: os.Args[0]}
	s := startStream(t, o, true)
	f, err := s.run(t.Context(), o, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Charges != 200 || f.DoubleCharges != 0 || f.Lost != 0 || f.Stuck != 0 || f.UnequalReplays != 0 || f.Accepted != 0 || f.Unexpected != 0 {
		t.Errorf("got %+v", f)
	}
	if f.Kills != 8 || f.InFlightAtKills < 8 || f.CutBeforeCharge+f.CutAfterCharge == 0 || f.Refused != s.plan.Changes || f.Executions != 200+f.Reexecutions || f.Samples == 0 {
		t.Errorf("got %+v", f)
	}
}

func TestEvents_ConsumersDoNotStart_IsAnError(t *testing.T) {
	g := proc.NewGroup(t.TempDir())
	t.Cleanup(g.Close)
	o := &Options{Orders: 50, Program: os.Args[0] + "-absent"}
	s, err := openStream(t.Context(), g, o, pipeline.NewPlan(1, 50), t.TempDir(), true)
	if err == nil || s != nil || !strings.Contains(err.Error(), "with-consumer-1") {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestEvents_Interrupted_EndsAtOnce(t *testing.T) {
	o := &Options{Orders: 100, Clients: 2, Program: os.Args[0]}
	s := startStream(t, o, true)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if _, err := s.run(ctx, o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
}
