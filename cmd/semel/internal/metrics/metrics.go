// Package metrics counts what happened to calls, measures handlers and the store, and
// writes the numbers in the text format of Prometheus. Its labels are bounded: kinds
// and outcomes are fixed sets, and operations and rules come from the configuration.
package metrics

import (
	"io"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Registry holds all metrics of a process. The zero value is ready. Safe for
// concurrent use, once it is set up.
type Registry struct {
	once     sync.Once
	registry *prometheus.Registry
	calls    callsCollector
	upstream *prometheus.HistogramVec
	requests *prometheus.HistogramVec
}

// buckets are the limits of the histograms, in seconds.
var buckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

func (r *Registry) init() *prometheus.Registry {
	r.once.Do(func() {
		r.registry = prometheus.NewRegistry()
		r.upstream = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "semel_upstream_seconds", Help: "Time that the service took for requests and messages that reached it.", Buckets: buckets,
		}, []string{"operation", "rule"})
		r.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "semel_store_seconds", Help: "Time of requests to the store of records; answered is false if it did not answer.", Buckets: buckets,
		}, []string{"request", "answered"})
	})
	return r.registry
}

// Counter adds a counter whose value read returns. Not safe for concurrent use.
func (r *Registry) Counter(name, help string, read func() float64) {
	r.init().MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// Gauge adds a gauge whose value read returns. Not safe for concurrent use.
func (r *Registry) Gauge(name, help string, read func() float64) {
	r.init().MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counters adds a counter with labels. each yields its values, each with the values of
// the labels in their order. Not safe for concurrent use.
func (r *Registry) Counters(name, help string, labels []string, each func(yield func(n uint64, values ...string))) {
	r.init().MustRegister(&family{prometheus.NewDesc(name, help, labels, nil), each})
}

// family is a counter whose values are read when they are written.
type family struct {
	desc *prometheus.Desc
	each func(yield func(n uint64, values ...string))
}

// Describe implements prometheus.Collector.
func (f *family) Describe(c chan<- *prometheus.Desc) { c <- f.desc }

// Collect implements prometheus.Collector.
func (f *family) Collect(c chan<- prometheus.Metric) {
	f.each(func(n uint64, values ...string) {
		c <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(n), values...)
	})
}

// Build adds semel_build_info. Not safe for concurrent use.
func (r *Registry) Build(version, revision, goVersion string) {
	r.init().MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "semel_build_info", Help: "1; the labels say how the program was built.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "go": goVersion},
	}, func() float64 { return 1 }))
}

// WriteTo writes all metrics.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	families, err := r.init().Gather()
	if err != nil {
		return 0, err
	}
	written := int64(0)
	for _, f := range families {
		n, err := expfmt.MetricFamilyToText(w, f)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	return written, nil
}
