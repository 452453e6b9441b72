package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/orders"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

func startDesk(t *testing.T, o *Options, semel bool) *desk {
	t.Helper()
	dir := t.TempDir()
	g := proc.NewGroup(dir)
	t.Cleanup(g.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	d, err := openDesk(ctx, g, o, orders.NewPlan(o.Seed, o.Orders), dir, semel)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func sagaOptions() *Options {
	return &Options{Saga: true, Orders: 100, Clients: 8, Kills: 6, Seed: 1, Program: os.Args[0]}
}

func TestDesk_WithoutSemelKilled_DoesNotAddUp(t *testing.T) {
	o := sagaOptions()
	d := startDesk(t, o, false)
	var told bytes.Buffer
	f, err := d.run(t.Context(), o, &told)
	if err != nil {
		t.Fatal(err)
	}
	// The kills come at random moments: none of the six may hit a payment.
	if f.Wrong == 0 || len(f.wrong) == 0 || f.Recognised != 0 || f.Stray+f.Unbalanced != 0 {
		t.Errorf("got %+v", f)
	}
	if f.Booked+f.Refused+f.Undone+f.Wrong != 100 || f.Kills != 6 || f.InFlightAtKills < 6 || f.Crashes != 0 {
		t.Errorf("got %+v", f)
	}
	if got := told.String(); !strings.Contains(got, "without Semel  100%") || !strings.Contains(got, "ended 100  kills 6") {
		t.Errorf("told: %s", got)
	}
}

func TestDesk_WithSemelKilled_AddsUp(t *testing.T) {
	o := sagaOptions()
	d := startDesk(t, o, true)
	f, err := d.run(t.Context(), o, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.wrong) != 0 || f.ExcessCents != 0 || f.MissingPieces != 0 || f.Wrong != 0 || f.Booked+f.Refused+f.Undone != 100 {
		t.Errorf("got %+v, %q", f, f.wrong)
	}
	if f.Booked == 0 || f.Refused == 0 || f.Undone == 0 || f.Kills != 6 || f.InFlightAtKills < 6 || f.Runs != 100+f.Reruns || f.Reruns == 0 || f.Crashes != 0 {
		t.Errorf("got %+v", f)
	}
}

// If the demo could not see a repeated step of a saga, its zero would mean nothing.
func TestDesk_SagaWithFreshKeys_IsSeen(t *testing.T) {
	o := sagaOptions()
	o.FreshKeys = true
	d := startDesk(t, o, true)
	f, err := d.run(t.Context(), o, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Wrong == 0 || len(f.wrong) == 0 {
		t.Errorf("nothing was seen: %+v", f)
	}
}

func TestDesk_WorkersDoNotStart_IsError(t *testing.T) {
	g := proc.NewGroup(t.TempDir())
	t.Cleanup(g.Close)
	o := &Options{Saga: true, Orders: 50, Program: os.Args[0] + "-absent"}
	d, err := openDesk(t.Context(), g, o, orders.NewPlan(1, 50), t.TempDir(), true)
	if err == nil || d != nil || !strings.Contains(err.Error(), "with-worker-1") {
		t.Errorf("got %v, %v", d, err)
	}
}

func TestDesk_Interrupted_EndsAtOnce(t *testing.T) {
	o := sagaOptions()
	d := startDesk(t, o, true)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if _, err := d.run(ctx, o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
}
