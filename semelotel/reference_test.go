package semelotel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/semel-go/semel/internal/pagetest"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store/memstore"
)

// instruments notes the instruments that are made, as rows of a table.
type instruments struct{ rows []string }

func (i *instruments) add(name, kind, unit, description string) {
	i.rows = append(i.rows, fmt.Sprintf("| `%s` | %s | `%s` | %s |", name, kind, unit, pagetest.Cell(description)))
}

// meters gives out the instruments.
type meters struct {
	noop.MeterProvider
	meter *instruments
}

func (m meters) Meter(string, ...metric.MeterOption) metric.Meter {
	return meter{noop.Meter{}, m.meter}
}

type meter struct {
	noop.Meter
	made *instruments
}

func (m meter) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	c := metric.NewInt64CounterConfig(o...)
	m.made.add(name, "counter", c.Unit(), c.Description())
	return m.Meter.Int64Counter(name, o...)
}

func (m meter) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	c := metric.NewFloat64HistogramConfig(o...)
	m.made.add(name, "histogram", c.Unit(), c.Description())
	return m.Meter.Float64Histogram(name, o...)
}

func (m meter) Int64ObservableGauge(name string, o ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	c := metric.NewInt64ObservableGaugeConfig(o...)
	m.made.add(name, "gauge", c.Unit(), c.Description())
	return m.Meter.Int64ObservableGauge(name, o...)
}

func (m meter) Float64ObservableGauge(name string, o ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	c := metric.NewFloat64ObservableGaugeConfig(o...)
	m.made.add(name, "gauge", c.Unit(), c.Description())
	return m.Meter.Float64ObservableGauge(name, o...)
}

func TestReference_Instruments_AreWhatTheCodeMakes(t *testing.T) {
	made := &instruments{}
	tel, err := semelotel.New(&semelotel.Options{MeterProvider: meters{meter: made}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tel.CountInDoubt(memstore.New(nil)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(made.rows)
	pagetest.Check(t, "docs/reference/opentelemetry.md", `# Metrics of OpenTelemetry

<!-- Made from the code by "make docs". Change the descriptions in the code, and not this page. -->

Package `+"[`semelotel`](../../semelotel/doc.go)"+` makes these metrics in a Go program. Its documentation lists their
attributes, and the spans. [Observability](../observability.md#traces-and-metrics-in-your-own-service) shows how to use it.

| metric | type | unit | meaning |
|---|---|---|---|
`+strings.Join(made.rows, "\n")+"\n")
}
