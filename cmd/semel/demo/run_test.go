package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRun_ProxyDoesNotStart_IsReported(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	o := usual()
	o.Orders, o.Kills, o.Program = 50, 0, os.Args[0]
	var out, told bytes.Buffer
	err := Run(t.Context(), o, &out, &told)
	if err == nil || !strings.Contains(err.Error(), "there is no proxy here") {
		t.Errorf("got %v", err)
	}
	if out.Len() != 0 {
		t.Errorf("a result was written: %s", &out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRun_KeepFiles_NamesThem(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	o := usual()
	o.Orders, o.Kills, o.Keep, o.Program = 50, 0, true, os.Args[0]
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	var out, told bytes.Buffer
	err := Run(ctx, o, &out, &told)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || !strings.Contains(told.String(), left[0].Name()) {
		t.Errorf("kept %v, %v; told %s", left, err, &told)
	}
}

func TestReport_JSON_HasDocumentedFields(t *testing.T) {
	for name, r := range map[string]*Report{"requests": shown(), "events": shownEvents()} {
		t.Run(name, func(t *testing.T) { hasFields(t, r) })
	}
}

func hasFields(t *testing.T, r *Report) {
	t.Helper()
	if err := r.judge(); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"orders", "deliveries", "without_semel", "with_semel", "broken", "seconds"} {
		if _, ok := got[field]; !ok {
			t.Errorf("there is no %s", field)
		}
	}
	if broken, ok := got["broken"].([]any); !ok || len(broken) != 0 {
		t.Errorf("broken is %v, not an empty list", got["broken"])
	}
	for _, side := range []string{"without_semel", "with_semel"} {
		figures, _ := got[side].(map[string]any)
		for _, field := range []string{
			"double_charges", "lost_orders", "replays", "changed_payloads_refused", "kills", "in_flight_at_kills", "unequal_answers",
			"stuck_orders", "parked", "reconciled", "executions", "re_executions", "conflicts", "latency_p50_ms", "latency_p99_ms",
		} {
			if _, ok := figures[field].(float64); !ok {
				t.Errorf("%s has no number %s", side, field)
			}
		}
	}
}

func TestProgress_NoTerminal_WritesWholeLines(t *testing.T) {
	s := startStraight(t, &Options{Orders: 50, Program: os.Args[0]})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	var b bytes.Buffer
	progress(ctx, &b, s.now)
	if got := b.String(); got != "  without Semel    0%  requests 0  charges 0  double charges 0  kills 0\n" {
		t.Errorf("got %q", got)
	}
	f, err := os.Create(s.journal + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) || isTerminal(&b) {
		t.Error("a file is taken for a terminal")
	}
}
