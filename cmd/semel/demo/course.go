package main

import (
	"slices"
	"time"
)

// Course is how a part of the demo went: its kills and its times.
type Course struct {
	Kills           int `json:"kills"` // of all processes
	InFlightAtKills int `json:"in_flight_at_kills"`
	Crashes         int `json:"crashes"` // deaths of processes that the demo did not kill

	Samples int     `json:"latency_samples"` // before the first kill
	P50     float64 `json:"latency_p50_ms"`
	P99     float64 `json:"latency_p99_ms"`

	// Timeline lists the kills in their order.
	Timeline []Kill `json:"timeline"`
	// Seconds is how long the part took.
	Seconds float64 `json:"seconds"`

	latencies []float64 // of the samples, in milliseconds, ascending
}

// Kill is one kill -9.
type Kill struct {
	Seconds  float64 `json:"seconds"` // since the part began
	Process  string  `json:"process"`
	InFlight int     `json:"in_flight"` // requests, messages or orders that the process worked on
}

// targets adds what became of the processes.
func (c *Course) targets(all []*target) {
	for _, t := range all {
		c.Kills += int(t.kills.Load())
		c.InFlightAtKills += int(t.lost.Load())
		c.Crashes += t.Deaths()
	}
}

// percentiles sets the latencies.
func (c *Course) percentiles(took []time.Duration) {
	slices.Sort(took)
	c.Samples, c.P50, c.P99 = len(took), percentile(took, 50), percentile(took, 99)
	for _, d := range took {
		c.latencies = append(c.latencies, float64(d.Microseconds())/1000)
	}
}

// percentile returns a percentile of sorted durations in milliseconds, or 0 if
// there are none.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	n := min(len(sorted)-1, len(sorted)*p/100)
	return float64(sorted[n].Microseconds()) / 1000
}
