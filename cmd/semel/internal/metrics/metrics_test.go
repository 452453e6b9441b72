package metrics_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
)

func text(t *testing.T, r *metrics.Registry) string {
	t.Helper()
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteTo_Events_CountedByKindOperationRule(t *testing.T) {
	var r metrics.Registry
	pay, rest := r.Calls("pay", "POST /pay"), r.Calls("http", "/")
	for range 2 {
		pay.Observe(t.Context(), semel.Event{Kind: semel.EventExecuted, Took: 250 * time.Millisecond})
	}
	rest.Observe(t.Context(), semel.Event{Kind: semel.EventRefused, Err: &semel.Error{Reason: semel.ErrParked}, Operation: "anything", Tenant: "ann", Key: "12345678"})
	rest.Observe(t.Context(), semel.Event{Kind: "of a later version"})
	got := text(t, &r)
	for _, want := range []string{
		"semel_events_total{kind=\"executed\",operation=\"pay\",rule=\"POST /pay\"} 2\n",
		"semel_events_total{kind=\"refused_parked\",operation=\"http\",rule=\"/\"} 1\n",
		"semel_events_total{kind=\"other\",operation=\"http\",rule=\"/\"} 1\n",
		"semel_upstream_seconds_sum{operation=\"pay\",rule=\"POST /pay\"} 0.5\n",
		"semel_upstream_seconds_count{operation=\"pay\",rule=\"POST /pay\"} 2\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, secret := range []string{"ann", "12345678", "anything"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is a label", secret)
		}
	}
	if pay.Count(semel.EventExecuted) != 2 || pay.Count(semel.EventFailed) != 0 {
		t.Error("Count does not tell what was observed")
	}
}

func TestWriteTo_EveryLine_PrometheusFormat(t *testing.T) {
	var r metrics.Registry
	c := r.Calls(`o"\`, "a\nb")
	kinds := []string{semel.EventExecuted, semel.EventNotStored, semel.EventTakenOver}
	for _, k := range kinds {
		c.Observe(t.Context(), semel.Event{Kind: k, Took: 1})
	}
	r.Gauge("semel_ready", "Whether it is ready.", func() float64 { return 1 })
	r.Counter("semel_x_total", "X.", func() float64 { return 3 })
	got := text(t, &r)
	if n := strings.Count(got, "semel_events_total{"); n != len(kinds) {
		t.Errorf("%d kinds, want %d", n, len(kinds))
	}
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "semel_") && !strings.HasPrefix(line, "# HELP semel_") && !strings.HasPrefix(line, "# TYPE semel_") {
			t.Errorf("line %q", line)
		}
	}
	if !strings.Contains(got, `operation="o\"\\",rule="a\nb"`) || !strings.Contains(got, "semel_ready 1\n") || !strings.Contains(got, "semel_x_total 3\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestObserve_Concurrent_CountsAll(t *testing.T) {
	var r metrics.Registry
	c := r.Calls("o", "/")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				c.Observe(t.Context(), semel.Event{Kind: semel.EventReplayed})
				text(t, &r)
			}
		})
	}
	wg.Wait()
	if n := c.Count(semel.EventReplayed); n != 800 {
		t.Errorf("counted %d", n)
	}
}
