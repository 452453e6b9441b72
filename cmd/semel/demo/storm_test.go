package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

func startStraight(t *testing.T, o *Options) *side {
	t.Helper()
	dir := t.TempDir()
	g := proc.NewGroup(dir)
	t.Cleanup(g.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := straight(ctx, g, o, fleet.NewPlan(o.Seed, o.Orders), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStorm_WithoutSemel_ChargesTwice(t *testing.T) {
	o := &Options{Orders: 100, Clients: 8, Kills: 3, Seed: 1, Program: os.Args[0]}
	s := startStraight(t, o)
	var told bytes.Buffer
	f, err := s.run(t.Context(), o, &told)
	if err != nil {
		t.Fatal(err)
	}
	if f.DoubleCharges == 0 || f.Lost != 0 || f.Stuck != 0 || f.Accepted == 0 || f.Samples == 0 {
		t.Errorf("got %+v", f)
	}
	if f.Kills != 3 || f.InFlightAtKills < 3 || f.CutBeforeCharge+f.CutAfterCharge != f.InFlightAtKills {
		t.Errorf("%d kills with %d in flight; the ledger missed %d and %d", f.Kills, f.InFlightAtKills, f.CutBeforeCharge, f.CutAfterCharge)
	}
	if got := told.String(); !strings.Contains(got, "without Semel  100%") || !strings.Contains(got, "kills 3") {
		t.Errorf("told: %s", got)
	}
}

func TestStorm_IdleProcess_IsNotKilled(t *testing.T) {
	o := &Options{Orders: 50, Program: os.Args[0]}
	s := startStraight(t, o)
	s.plan.Steps = s.plan.Steps[:0] // the fleet has nothing to do, so the storm is over
	if err := s.storm().run(t.Context(), 3, 1); err != nil {
		t.Fatal(err)
	}
	s.plan.Steps = append(s.plan.Steps, fleet.Step{}) // something to do, but nobody does it
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.storm().strike(ctx, s.service, 1); err != nil {
		t.Fatal(err)
	}
	if s.service.kills.Load() != 0 {
		t.Error("an idle process was killed")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.service.ready(ctx); err != nil {
		t.Errorf("it was left frozen: %v", err)
	}
}

func TestStorm_ContextEnds_Ends(t *testing.T) {
	s := startStraight(t, &Options{Orders: 50, Program: os.Args[0]})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.storm().run(ctx, 3, 1); err != nil || s.service.kills.Load() != 0 {
		t.Errorf("%d kills, %v", s.service.kills.Load(), err)
	}
}
