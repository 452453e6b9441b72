package semelotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel/store"
)

// Options configures a Telemetry. Nil and zero fields mean the defaults.
type Options struct {
	// TracerProvider is otel.GetTracerProvider() by default.
	TracerProvider trace.TracerProvider
	// MeterProvider is otel.GetMeterProvider() by default.
	MeterProvider metric.MeterProvider
	// Tenant adds the tenant to spans, as semel.tenant. It can be personal data.
	Tenant bool
	// Key adds the idempotency key to spans of Runner, as semel.key. It can be
	// personal data.
	Key bool
}

// scope is the name of the instrumentation.
const scope = "github.com/semel-go/semel/semelotel"

// Telemetry makes spans and metrics. Make it with New. Safe for concurrent use. There
// is nothing to close; the providers are the caller's.
type Telemetry struct {
	tracer trace.Tracer
	meter  metric.Meter
	tenant bool
	key    bool
	labels sync.Map // of an operation and an outcome: a *callLabels

	calls, lost, messages, events    metric.Int64Counter
	handlers, requests, messageTries metric.Float64Histogram
}

// New makes a Telemetry. It fails if the MeterProvider does.
func New(o *Options) (*Telemetry, error) {
	var d Options
	if o != nil {
		d = *o
	}
	if d.TracerProvider == nil {
		d.TracerProvider = otel.GetTracerProvider()
	}
	if d.MeterProvider == nil {
		d.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{tracer: d.TracerProvider.Tracer(scope), meter: d.MeterProvider.Meter(scope), tenant: d.Tenant, key: d.Key}
	if err := t.instruments(); err != nil {
		return nil, fmt.Errorf("semelotel: %w", err)
	}
	return t, nil
}

func (t *Telemetry) instruments() error {
	var errs []error
	count := func(to *metric.Int64Counter, name, unit, description string) {
		var err error
		*to, err = t.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
	}
	measure := func(to *metric.Float64Histogram, name, description string) {
		var err error
		*to, err = t.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(
			0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30))
		errs = append(errs, err)
	}
	count(&t.calls, "semel.calls", "{call}", "Calls that have ended.")
	count(&t.lost, "semel.leases.lost", "{lease}", "Runs whose lease was lost.")
	count(&t.messages, "semel.messages", "{try}", "Tries of messages.")
	count(&t.events, "semel.message.events", "{event}", "Other events of messages and of brokers.")
	measure(&t.handlers, "semel.handler.duration", "Duration of runs of handlers.")
	measure(&t.requests, "semel.store.duration", "Duration of requests to the store.")
	measure(&t.messageTries, "semel.message.duration", "Duration of tries of messages.")
	return errors.Join(errs...)
}

// CountInDoubt adds two gauges: how many records of st are in doubt, at most
// store.MaxDoubt, and the seconds since the first call of the oldest of them. They are
// read when the metrics are collected. If the store does not answer, the gauges have no
// value and the collection has the error. The error of CountInDoubt is
// errors.ErrUnsupported if st is not a store.Lister.
func (t *Telemetry) CountInDoubt(st store.Store) error {
	if _, ok := store.As[store.Lister](st); !ok {
		return fmt.Errorf("semelotel: the store cannot list its records: %w", errors.ErrUnsupported)
	}
	records, err := t.meter.Int64ObservableGauge("semel.records.in_doubt", metric.WithUnit("{record}"), metric.WithDescription("Records in doubt."))
	if err != nil {
		return fmt.Errorf("semelotel: %w", err)
	}
	age, err := t.meter.Float64ObservableGauge("semel.records.in_doubt.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the first call of the oldest record in doubt."))
	if err != nil {
		return fmt.Errorf("semelotel: %w", err)
	}
	_, err = t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		d, err := store.CountInDoubt(ctx, st)
		if err != nil {
			return fmt.Errorf("semelotel: count the records in doubt: %w", err)
		}
		o.ObserveInt64(records, int64(d.Records))
		o.ObserveFloat64(age, d.Oldest.Seconds())
		return nil
	}, records, age)
	if err != nil {
		return fmt.Errorf("semelotel: %w", err)
	}
	return nil
}
