package main

import (
	"fmt"
	"io"
	"strings"
)

// write writes the report as a table for people.
func (r *Report) write(w io.Writer) error {
	var b strings.Builder
	u, s := &r.Unprotected, &r.Semel
	line := func(what string, a, c any) { fmt.Fprintf(&b, "  %-34s %14v %14v\n", what, a, c) }
	line("", "without Semel", "with Semel")
	line("orders", r.Orders, r.Orders)
	what, latency := "requests", "first call, undisturbed: p50"
	if r.events {
		what, latency = "messages", "from producer to ack: p50"
		r.eventLines(line)
	} else {
		r.requestLines(line)
	}
	b.WriteByte('\n')
	line("DOUBLE CHARGES", u.DoubleCharges, s.DoubleCharges)
	line("LOST ORDERS", u.Lost, s.Lost)
	if r.events {
		line("UNEQUAL CHARGES OF ONE ORDER", u.UnequalReplays, s.UnequalReplays)
	} else {
		line("UNEQUAL ANSWERS TO ONE KEY", u.UnequalReplays, s.UnequalReplays)
	}
	line("STUCK ORDERS", u.Stuck, s.Stuck)
	b.WriteByte('\n')
	line(latency, ms(u.P50), ms(s.P50))
	line(strings.Repeat(" ", len(latency)-3)+"p99", ms(u.P99), ms(s.P99))
	line("  added by Semel: p50", none, ms(r.AddedP50))
	line("                  p99", none, ms(r.AddedP99))
	b.WriteByte('\n')
	if len(r.Broken) == 0 {
		fmt.Fprintf(&b, "  %d kills with %d %s in flight, and every order was charged exactly once.\n", s.Kills, s.InFlightAtKills, what)
	}
	for _, what := range r.Broken {
		fmt.Fprintf(&b, "  BROKEN: %s\n", what)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func ms(v float64) string { return fmt.Sprintf("%.1f ms", v) }

// none is the figure of what there is not.
const none = "-"

// requestLines are what happened on the way.
func (r *Report) requestLines(line func(what string, a, c any)) {
	u, s := &r.Unprotected, &r.Semel
	line("requests sent", u.Sent, s.Sent)
	line("  duplicates", u.Duplicates, s.Duplicates)
	line("worker killed (kill -9)", u.WorkerKills, s.WorkerKills)
	line("proxy killed (kill -9)", none, s.ProxyKills)
	line("  requests in flight then", u.InFlightAtKills, s.InFlightAtKills)
	line("handler executions", u.Executions, s.Executions)
	line("  re-executions", u.Reexecutions, s.Reexecutions)
	line("answers replayed", none, s.Replays)
	line("conflicts (409), repeated later", u.Conflicts, s.Conflicts)
	line("parked on doubt", none, s.Parked)
	line("  reconciled", none, s.Reconciled)
	line("changed payloads refused (422)", r.refused(u), r.refused(s))
}

// eventLines are what happened on the way.
func (r *Report) eventLines(line func(what string, a, c any)) {
	u, s := &r.Unprotected, &r.Semel
	line("messages sent", u.Sent, s.Sent)
	line("  duplicates", u.Duplicates, s.Duplicates)
	line("consumer killed (kill -9)", u.WorkerKills, s.WorkerKills)
	line("  messages in flight then", u.InFlightAtKills, s.InFlightAtKills)
	line("  handlers cut off before charge", u.CutBeforeCharge, s.CutBeforeCharge)
	line("                    after charge", u.CutAfterCharge, s.CutAfterCharge)
	line("handler executions", u.Executions, s.Executions)
	line("  re-executions", u.Reexecutions, s.Reexecutions)
	line("duplicates dropped", u.Replays, s.Replays)
	line("changed payloads dead-lettered", r.refused(u), r.refused(s))
}

func (r *Report) refused(f *Figures) string { return fmt.Sprintf("%d of %d", f.Refused, r.Changes) }
