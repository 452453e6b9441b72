package semelotel_test

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

var errBoom = errors.New("boom of canary-tenant")

// world is a Telemetry with the SDK's exporters in memory.
type world struct {
	tel    *semelotel.Telemetry
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
}

func newWorld(t *testing.T, o semelotel.Options) *world {
	t.Helper()
	w := &world{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	o.TracerProvider, o.MeterProvider = w.tracer, sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	var err error
	if w.tel, err = semelotel.New(&o); err != nil {
		t.Fatal(err)
	}
	return w
}

// guard makes a Guard over st, or over a new store in memory, with all of w's telemetry.
func (w *world) guard(t *testing.T, st store.Store, o semel.Options) *semelotel.Runner {
	t.Helper()
	if st == nil {
		st = memstore.New(nil)
	}
	o.Observe = w.tel.Observe(o.Observe)
	g, err := semel.New(w.tel.Store(st), &o)
	if err != nil {
		t.Fatal(err)
	}
	return w.tel.Runner(g)
}

// take returns the spans that have ended since the last take.
func (w *world) take() tracetest.SpanStubs {
	s := w.spans.GetSpans()
	w.spans.Reset()
	return s
}

// only is the one span that has ended since the last take.
func (w *world) only(t *testing.T) tracetest.SpanStub {
	t.Helper()
	s := w.take()
	if len(s) != 1 {
		t.Fatalf("%d spans, want 1: %+v", len(s), s)
	}
	return s[0]
}

func value(attributes []attribute.KeyValue, name string) string {
	for _, a := range attributes {
		if string(a.Key) == name {
			return a.Value.String()
		}
	}
	return ""
}

// metric is the data of a metric, by the values of its attributes in the order of names,
// joined by spaces: sums of counters, numbers of measurements, values of gauges.
func (w *world) metric(t *testing.T, name string, names ...string) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	label := func(s attribute.Set) string {
		text := ""
		for i, n := range names {
			if i > 0 {
				text += " "
			}
			text += value(s.ToSlice(), n)
		}
		return text
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != name {
				continue
			}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					got[label(p.Attributes)] += float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					got[label(p.Attributes)] += float64(p.Count)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					got[label(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					got[label(p.Attributes)] = p.Value
				}
			default:
				t.Errorf("%s has data of type %T", name, d)
			}
		}
	}
	return got
}

func call(key string) semel.Call {
	return semel.Call{Operation: "charge", Tenant: "canary-tenant", Key: "canary-" + key, Payload: semel.JSON("canary-payload")}
}

func paid(context.Context, *semel.Execution) (string, error) { return "canary-receipt", nil }

func fails(err error) func(context.Context, *semel.Execution) (string, error) {
	return func(context.Context, *semel.Execution) (string, error) { return "", err }
}
