package main

import (
	"fmt"
	"slices"
	"strings"
)

// about says what the contenders of a group do.
var about = map[string]string{
	inMemory:       "*A map and a mutex* is the table of seen keys that a process keeps for itself: without leases, fingerprints, bounds or expiry.",
	sqliteLeased:   "*One commit a step* is the code that one writes without a library: an INSERT, an UPDATE with the answer, one connection for writers, each commit synced. *INSERT alone* inserts a unique key in one commit. It keeps no answer, and after a crash nobody knows whether the work was done.",
	sqliteAtomic:   "The handler inserts a row in the same transaction. *One transaction* does the same by hand.",
	postgresLeased: "*Two transactions* is the pattern of two articles: `SELECT … FOR UPDATE` and INSERT in one transaction, UPDATE with the answer in another. *INSERT alone* inserts a unique key and keeps no answer. *pgbench*, PostgreSQL's load generator in C, sends the least SQL that claims and completes a key: an INSERT and an UPDATE, a commit each. It tells no percentiles and makes no replays.",
	postgresAtomic: "The handler inserts a row in the same transaction. *INSERT first* and *FOR UPDATE first* are the patterns of two articles: key, row and answer in one transaction.",
	redisMemory:    "Nothing is on disk. *SET NX and a pipeline* is the pattern of one article: a lock, then the answer and the removal of the lock. Here it also looks for the answer after it has the lock, because the article's code runs a late duplicate again. *A script and HSET* is the pattern of another article.",
	redisSynced:    "The same with `appendfsync always`.",
	dynamoStub:     "The server is a stub of the test, not DynamoDB: it answers each request after 5 ms and shares the two cores. So this shows requests and processor time, and not the throughput of a table. *Get, put, update* is the pattern of one article: GetItem, PutItem on condition, UpdateItem with the answer. With many callers the rates depend on the client of AWS, which both use.",
	doorHandler:    "Requests over loopback with 64 bytes of headers and a small body. The client, the service and PostgreSQL are processes of their own. A bare handler runs again for each duplicate.",
	doorProxy:      "`semel proxy` in front of the same service, beside a bare `httputil.ReverseProxy`, which sends each duplicate to the service.",
}

const introduction = `How many calls a second Semel carries out, and how long they take, beside other ways to
make a call take effect once. The other ways are the patterns of five articles about
idempotency, plain SQL, PostgreSQL's own load generator, and a handler and a proxy without
any protection. They promise less than Semel: each lacks some of lease, fencing token, fingerprint,
expiry and take-over after a crash.

- **Callers** call without a pause. They, Semel and the servers share the cores, and the
  network is loopback. With many callers the cores are busy all the time, and a
  percentile is mostly the wait for one of them. A call over a network waits for it too: two
  round trips for a new call and one for a replay.
- **Keys** are random UUIDs, and answers have 200 bytes. The handler does nothing.
- **Contenders take turns** in short rounds, every second round in reverse, because a
  machine is not equally fast for long. A figure is the median of the rounds, with the
  quartiles in parentheses. In the charts a thin bar joins the quartiles.
- **The ratio** is a contender's rate divided by Semel's in the same round: 0.50
  means half as many calls as Semel. Under HTTP it is the ratio to the bare handler or
  proxy. Trust it more than the rates.
- **New calls** have a key that was never used. **Replays** have a key whose call has
  completed.`

func benchmarksPage(r *report, charts map[string]string) string {
	m := &markdown{}
	m.line("# Benchmarks")
	m.line("%s", introduction)
	m.line(generated + " [Sizing](sizing.md) and [a billion keys a day](scale.md) are made from the same figures.")
	m.line("## Stores")
	m.line("%s", r.origin("stores"))
	r.summary(m)
	r.groups(m, charts, "stores", "###")
	m.line("## HTTP")
	m.line("%s", r.origin("doors"))
	r.groups(m, charts, "doors", "###")
	r.growth(m, charts)
	m.line("## Bytes of a record")
	m.line("%s", r.origin("sizes"))
	m.line("The key has 36 bytes, the operation 6 and the tenant 12. The answer of 1 KiB is random text, which cannot be compressed. SQLite: the file. PostgreSQL: table, index and free space after the traffic, before a vacuum. Redis: memory. DynamoDB: the size that AWS bills, by its rule, without the index.")
	var rows [][]string
	for _, g := range names(r.of("sizes", "", "", "", 0), func(f *Figure) string { return f.Group }) {
		rows = append(rows, []string{g, number(r.stat("sizes", g, "", noAnswer, 0, "bytes").Median(), 0), number(r.stat("sizes", g, "", kibAnswer, 0, "bytes").Median(), 0)})
	}
	m.table(1, []string{"store", noAnswer, kibAnswer}, rows)
	r.others(m)
	return m.String()
}

// summary is a table of Semel's own figures for the fewest and the most callers.
func (r *report) summary(m *markdown) {
	callers := names(r.of("stores", "", "", "", 0), func(f *Figure) int { return f.N })
	if len(callers) == 0 {
		return
	}
	few, many := slices.Min(callers), slices.Max(callers)
	var rows [][]string
	for _, g := range storeGroups {
		row := []string{"[" + g.name + "](#" + anchor(g.name) + ")"}
		for _, kind := range []string{newCalls, replays} {
			for _, n := range []int{few, many} {
				row = append(row, number(r.stat("stores", g.name, ours, kind, n, "rate").Median(), 0), number(r.stat("stores", g.name, ours, kind, n, "p99").Median(), 2))
			}
		}
		rows = append(rows, row)
	}
	head := []string{"Semel on"}
	for _, kind := range []string{newCalls, replays} {
		for _, n := range []int{few, many} {
			head = append(head, fmt.Sprintf("%s a second, %s", kind, plural(n, "caller")), "p99, ms")
		}
	}
	m.table(1, head, rows)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// anchor is the anchor of a heading.
func anchor(heading string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '_':
			return c
		}
		return -1
	}, strings.ToLower(heading))
}

// groups writes each group of a section: a description, a chart, and all figures.
func (r *report) groups(m *markdown, charts map[string]string, section, level string) {
	for _, group := range names(r.of(section, "", "", "", 0), func(f *Figure) string { return f.Group }) {
		m.line("%s %s", level, group)
		m.line("%s", about[group])
		name := section + "-" + anchor(group)
		var panels []panel
		for _, value := range []struct{ name, title string }{{"rate", "calls a second"}, {"p99", "p99, ms"}} {
			for _, kind := range []string{newCalls, replays} {
				panels = append(panels, r.panel(section, group, kind, value.name, kind+": "+value.title))
			}
		}
		charts[name] = chart(group, panels...)
		m.line("![%s: rates and latencies over the number of callers](images/benchmarks/%s.svg)", group, name)
		var rows [][]string
		for _, f := range r.of(section, group, "", "", 0) {
			v := f.Values
			if _, ok := v["rate"]; !ok {
				continue // the memory of the proxy, which is on the page about sizing
			}
			rows = append(rows, []string{f.Kind, fmt.Sprint(f.N), f.Name, span(v["rate"], 0), span(v["ratio"], 2), span(v["p50"], 2), span(v["p99"], 2), span(v["client"], 0), span(v["server"], 0)})
		}
		m.line("<details><summary>All figures</summary>")
		m.table(3, []string{"calls", "callers", "contender", "a second", "ratio", "p50, ms", "p99, ms", "client, µs", "server, µs"}, rows)
		m.line("Client and server are the processor time of a call: of the process that makes the calls, and of the servers.")
		m.line("</details>")
	}
}

// panel is a value of all contenders of a group over the number of callers.
func (r *report) panel(section, group, kind, value, title string) panel {
	figures := r.of(section, group, "", kind, 0)
	p := panel{title: title, x: "callers", log: value == "p99"}
	callers := names(figures, func(f *Figure) int { return f.N })
	for _, n := range callers {
		p.ticks = append(p.ticks, thousands(n))
	}
	for _, name := range names(figures, func(f *Figure) string { return f.Name }) {
		s, known := series{name: name, bold: strings.HasPrefix(name, ours)}, false
		for _, n := range callers {
			var v Stat
			for _, f := range r.of(section, group, name, kind, n) {
				v = f.Values[value]
			}
			s.values = append(s.values, v)
			known = known || v != Stat{}
		}
		if known {
			p.series = append(p.series, s)
		}
	}
	slices.SortStableFunc(p.series, func(a, b series) int { // Semel has the first colour
		switch {
		case a.bold == b.bold:
			return 0
		case a.bold:
			return -1
		}
		return 1
	})
	return p
}

// growth writes the section about tables of different sizes.
func (r *report) growth(m *markdown, charts map[string]string) {
	m.line("## Growth")
	m.line("%s", r.origin("growth"))
	m.line("The same calls, by %d callers, in tables with more and more records, which take turns on one server. The records are copies of one that Semel wrote, with random ids, and a tenth of them has expired. The ratio is to the smallest table.", growthCallers)
	var panels []panel
	for _, value := range []struct{ name, title string }{{"rate", "calls a second"}, {"p99", "p99, ms"}} {
		for _, group := range []string{sqliteLeased, postgresLeased} {
			p := panel{title: group + ": " + value.title, x: "records in the table", log: value.name == "p99"}
			for _, kind := range []string{newCalls, replays} {
				s := series{name: kind, bold: kind == newCalls}
				p.ticks = nil
				for _, f := range r.of("growth", group, "", kind, 0) {
					p.ticks = append(p.ticks, thousands(f.N))
					s.values = append(s.values, f.Values[value.name])
				}
				p.series = append(p.series, s)
			}
			panels = append(panels, p)
		}
	}
	charts["growth"] = chart("Growth of the table", panels...)
	m.line("![Rates and latencies over the number of records](images/benchmarks/growth.svg)")
	var rows, sweeps [][]string
	for _, f := range r.of("growth", "", "", "", 0) {
		v := f.Values
		if f.Kind == "sweep" {
			seconds, deleted := v["seconds"].Median(), v["deleted"].Median()
			sweeps = append(sweeps, []string{f.Group, f.Name, number(seconds, 2), number(deleted, 0), number(deleted/seconds, 0), span(v["before"], 2), span(v["beside"], 2)})
			continue
		}
		rows = append(rows, []string{f.Group, f.Kind, f.Name, span(v["rate"], 0), span(v["ratio"], 2), span(v["p50"], 2), span(v["p99"], 2)})
	}
	m.table(3, []string{"store", "calls", "table", "a second", "ratio", "p50, ms", "p99, ms"}, rows)
	m.line("One pass of a sweep, beside %d new calls a second. It reads all records, and rests for three quarters of its time. Each was measured once. The last columns are the p99 of these calls in the seconds before the sweep and beside it; they are empty if a sweep was over before %d calls.", sweepPace, sweepPace)
	m.table(2, []string{"store", "table", "seconds", "deleted", "deleted a second", "p99 before, ms", "p99 beside, ms"}, sweeps)
}

// others writes the comparisons with libraries.
func (r *report) others(m *markdown) {
	m.line("## Beside libraries")
	m.line("%s", r.origin("others"))
	m.line("Powertools for AWS Lambda (Python) claims and completes calls on a server that answers each request after 5 ms. Go and Python alone make a part of the difference. DBOS Transact for Go runs workflows of ten steps, beside sagas, on PostgreSQL with 0 or 1 ms of delay for each round trip. [Sagas beside DBOS](saga-compared.md) and [DynamoDB](dynamodb.md#beside-powertools) have the settings.")
	var rows [][]string
	for _, f := range r.of("others", "", "", "", 0) {
		rows = append(rows, []string{f.Group, f.Kind, fmt.Sprint(f.N), f.Name, span(f.Values["rate"], 0), span(f.Values["ratio"], 2), span(f.Values["client"], 0)})
	}
	m.table(4, []string{"beside", "what", "at once", "contender", "a second", "ratio", "processor time, µs"}, rows)
}
