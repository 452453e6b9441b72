package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// row is a line of the table. It is empty between two groups.
type row struct {
	label, without, with string
}

// none stands where a figure does not exist.
const none = "-"

// rows are the lines of the table, in their order.
func (r *Report) rows() []row {
	var all []row
	line := func(label string, without, with any) {
		all = append(all, row{label, fmt.Sprint(without), fmt.Sprint(with)})
	}
	u, s := &r.Without, &r.With
	line("orders", r.Orders, r.Orders)
	unequal, latency := "UNEQUAL ANSWERS TO ONE KEY", "latency of a first request: p50"
	if r.events {
		unequal, latency = "UNEQUAL CHARGES OF ONE ORDER", "latency, publish to ack: p50"
		r.eventLines(line)
	} else {
		r.requestLines(line)
	}
	all = append(all, row{})
	line("DOUBLE CHARGES", u.DoubleCharges, s.DoubleCharges)
	line("LOST ORDERS", u.Lost, s.Lost)
	line(unequal, u.UnequalReplays, s.UnequalReplays)
	line("STUCK ORDERS", u.Stuck, s.Stuck)
	all = append(all, row{})
	line(latency, milliseconds(u.P50), milliseconds(s.P50))
	line(strings.Repeat(" ", len(latency)-3)+"p99", milliseconds(u.P99), milliseconds(s.P99))
	line("  measured before the first kill", u.Samples, s.Samples)
	return all
}

// writeTable writes a report for people.
func writeTable(w io.Writer, rows []row, summary []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %-34s %14s %14s\n", "", "without Semel", "with Semel")
	for _, l := range rows {
		if l == (row{}) {
			b.WriteByte('\n')
			continue
		}
		fmt.Fprintf(&b, "  %-34s %14s %14s\n", l.label, l.without, l.with)
	}
	b.WriteByte('\n')
	for _, line := range summary {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summary says in sentences what the figures mean.
func (r *Report) summary() []string {
	if len(r.Broken) > 0 {
		lines := make([]string, len(r.Broken))
		for i, broken := range r.Broken {
			lines[i] = "BROKEN: " + broken
		}
		return lines
	}
	s := &r.With
	what := "requests"
	if r.events {
		what = "messages"
	}
	lines := []string{fmt.Sprintf("With Semel every order was charged exactly once, although %d processes were killed with %d %s in flight.", s.Kills, s.InFlightAtKills, what)}
	switch {
	case s.Reexecutions == 0:
	case r.events:
		lines = append(lines, fmt.Sprintf("%d handler runs were re-executions: a kill had cut off the run before, and its transaction rolled back, charge included.", s.Reexecutions))
	default:
		lines = append(lines, fmt.Sprintf("%d handler runs were re-executions: a kill had cut off the run before, and the payment service had confirmed", s.Reexecutions),
			"that this run had not charged and no longer can. Only then did semel proxy let the request run again.")
	}
	if r.events {
		lines = append(lines, "Latency: without Semel a consumer commits twice for each message (seen, then charge), with Semel once.")
	}
	return lines
}

// next says what to try after the demo.
func (r *Report) next(o *Options) []string {
	if r.events {
		return suggest(o, "--events", tryRequests, trySaga, tryProxy)
	}
	return suggest(o, "", tryEvents, trySaga, tryProxy)
}

// suggestion is a command line with its purpose.
type suggestion struct{ command, why string }

var (
	tryRequests = suggestion{program, "requests through semel proxy"}
	tryEvents   = suggestion{program + " --events", "messages, a broker and consumers"}
	trySaga     = suggestion{program + " --saga", "orders over three systems, undone if one refuses"}
	tryProxy    = suggestion{"semel proxy --upstream http://127.0.0.1:3000 --scope single", "protect a service of your own"}
)

// suggest says what to try after the demo that has the flag.
func suggest(o *Options, flag string, all ...suggestion) []string {
	if o.HTML == "" {
		command := strings.Join(strings.Fields(program+" "+flag+" --html report.html"), " ")
		all = slices.Insert(all, len(all)-1, suggestion{command, "the result as a page with charts"})
	}
	lines, width := []string{"Try next:"}, 0
	for _, s := range all {
		width = max(width, len(s.command))
	}
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, s.command, s.why))
	}
	return lines
}

// program is how people start the demo: in a clone, or anywhere else.
var program = func() string {
	if _, err := os.Stat("cmd/semel/demo/main.go"); err == nil {
		return "go run ./cmd/semel/demo"
	}
	return "go run github.com/semel-go/semel/cmd/semel/demo@latest"
}()

func milliseconds(v float64) string { return fmt.Sprintf("%.1f ms", v) }

// requestLines show how the requests went.
func (r *Report) requestLines(line func(label string, without, with any)) {
	u, s := &r.Without, &r.With
	line("requests sent", u.Sent, s.Sent)
	line("  duplicates", u.Duplicates, s.Duplicates)
	line("payment service killed (kill -9)", u.ServiceKills, s.ServiceKills)
	line("semel proxy killed (kill -9)", none, s.ProxyKills)
	line("  requests in flight at the kills", u.InFlightAtKills, s.InFlightAtKills)
	line("handler runs in the payment service", u.Executions, s.Executions)
	line("  re-executions", u.Reexecutions, s.Reexecutions)
	line("  charges", u.Charges, s.Charges)
	line("answers replayed", none, s.Replays)
	line("conflicts (409), repeated later", u.Conflicts, s.Conflicts)
	line("parked because in doubt", none, s.Parked)
	line("  reconciled", none, s.Reconciled)
	line("changed payloads refused (422)", r.refused(u), r.refused(s))
}

// eventLines show how the messages went.
func (r *Report) eventLines(line func(label string, without, with any)) {
	u, s := &r.Without, &r.With
	line("messages sent", u.Sent, s.Sent)
	line("  duplicates", u.Duplicates, s.Duplicates)
	line("consumers killed (kill -9)", u.ConsumerKills, s.ConsumerKills)
	line("  messages in flight at the kills", u.InFlightAtKills, s.InFlightAtKills)
	line("  handlers cut off before charge", u.CutBeforeCharge, s.CutBeforeCharge)
	line("                   after charge", u.CutAfterCharge, s.CutAfterCharge)
	line("handler runs in the consumers", u.Executions, s.Executions)
	line("  re-executions", u.Reexecutions, s.Reexecutions)
	line("  charges", u.Charges, s.Charges)
	line("duplicates dropped", u.Replays, s.Replays)
	line("changed payloads dead-lettered", r.refused(u), r.refused(s))
}

func (r *Report) refused(f *Figures) string { return fmt.Sprintf("%d of %d", f.Refused, r.Changes) }

// introduction says what is about to happen.
func (r *Report) introduction(o *Options) string {
	if r.events {
		return fmt.Sprintf(`This demo charges %d orders twice: first without Semel, then with Semel.
%d producers send %d messages to a NATS server; many orders are sent two or three times.
%d consumers insert the charges into an SQLite database, and the demo kills one of them %d times (kill -9).
At the end it counts the charges in the database. Ctrl-C stops the demo and leaves nothing behind.

`, r.Orders, o.Clients, r.Deliveries, consumers, o.Kills)
	}
	return fmt.Sprintf(`This demo pays %d orders twice: first without Semel, then through semel proxy.
%d clients send their requests to a payment service; many are sent again, some by several clients at once.
The demo kills the payment service %d times (kill -9), and with Semel it kills semel proxy %d times as well.
At the end it counts the charges in the payment service's journal. Ctrl-C stops the demo and leaves nothing behind.

`, r.Orders, o.Clients, o.Kills, o.Kills)
}
