package main

import (
	"fmt"
	"math"
	"slices"
)

// sizedStores are the stores of the pages sizing.md and scale.md, and the group of
// section sizes that has the bytes of their records.
var sizedStores = []struct{ group, bytes string }{
	{sqliteLeased, sqliteLeased}, {postgresLeased, postgresLeased}, {redisMemory, redisMemory}, {redisSynced, redisMemory}, {dynamoStub, dynamoStub},
}

// most is the largest number of callers that was measured.
func (r *report) most(section string) int {
	callers := names(r.of(section, "", "", "", 0), func(f *Figure) int { return f.N })
	if len(callers) == 0 {
		return 0
	}
	return slices.Max(callers)
}

// busy is the processor time of a call in microseconds, of client and server.
func (r *report) busy(group, kind string) (client, server float64) {
	n := r.most("stores")
	client = r.stat("stores", group, ours, kind, n, "client").Median()
	if group != sqliteLeased && group != inMemory && group != dynamoStub { // these have no server, or one of somebody else
		server = r.stat("stores", group, ours, kind, n, "server").Median()
	}
	return client, server
}

const million = 1_000_000

func sizingPage(r *report) string {
	m := &markdown{}
	m.line("# Sizing")
	m.line("How much processor time, memory and disk Semel needs, to plan a machine. All figures are measured ([benchmarks](benchmarks.md)), with answers of 200 bytes unless it says otherwise; multiplications are exact. %s", generated)
	m.line("## Processor time")
	m.line("The processor time of a call with %s, and the calls that one core can carry out in a second if it does nothing else. The client is the process with Semel; the server is the database. If both are on one machine, add their times. The sync of a commit takes no processor time, so with few callers it bounds the rate instead: see the [rates](benchmarks.md#stores).", plural(r.most("stores"), "caller"))
	var rows [][]string
	for _, group := range append([]string{inMemory}, groupsOf()...) {
		for _, kind := range []string{newCalls, replays} {
			client, server := r.busy(group, kind)
			row := []string{group, kind, number(client, 0), perCore(client), "", ""}
			if server > 0 {
				row[4], row[5] = number(server, 0), perCore(server)
			}
			rows = append(rows, row)
		}
	}
	m.table(2, []string{"store", "calls", "client, µs", "a second of a core", "server, µs", "a second of a core"}, rows)
	m.line("On SQLite the store is a part of the client. The server of DynamoDB is AWS. Redis carries out commands on one core.")
	m.line("## Disk and memory")
	m.line("Records of a million keys a day, kept for 24 hours (the default) and for 7 days. A row with *no answer* keeps an empty one; the answers of 1 KiB cannot be compressed. An expired record stays until the [sweep](../README.md#sweep) removes it: add a pass of it, and on PostgreSQL the free space that a vacuum leaves in the table.")
	rows = nil
	for _, group := range names(r.of("sizes", "", "", "", 0), func(f *Figure) string { return f.Group }) {
		for _, kind := range []string{noAnswer, kibAnswer} {
			bytes := r.stat("sizes", group, "", kind, 0, "bytes").Median()
			rows = append(rows, []string{group, kind, number(bytes, 0), size(bytes * million), size(bytes * million * 7)})
		}
	}
	m.table(2, []string{"store", "record", "bytes", "24 h", "7 days"}, rows)
	m.line("PostgreSQL also wrote %s of write-ahead log for each new call without an answer, and %s with 1 KiB: %s and %s for a million. It was a new table; after a checkpoint the first change of each page is logged as a whole page, so random keys in a large table write more ([choice of keys](postgres.md#choice-of-keys)).",
		size(r.stat("sizes", postgresLeased, "", noAnswer, 0, "log").Median()), size(r.stat("sizes", postgresLeased, "", kibAnswer, 0, "log").Median()),
		size(r.stat("sizes", postgresLeased, "", noAnswer, 0, "log").Median()*million), size(r.stat("sizes", postgresLeased, "", kibAnswer, 0, "log").Median()*million))
	m.line("## The proxy")
	doors := r.most("doors")
	p := func(value string) float64 {
		return r.stat("doors", doorProxy, "", memoryUnderLoad, doors, value).Median()
	}
	m.line("`semel proxy` on PostgreSQL, after %s requests of %s without a pause:", number(p("requests"), 0), plural(doors, "client"))
	m.table(1, []string{"", ""}, [][]string{
		{"memory when it starts", size(p("idle"))},
		{"the most memory that it had", size(p("most"))},
		{"connections to PostgreSQL", number(p("connections"), 0)},
		{"processor time of a new request, µs: proxy, service and PostgreSQL", number(r.stat("doors", doorProxy, ours+", PostgreSQL", newCalls, doors, "server").Median(), 0)},
		{"the same of a replay", number(r.stat("doors", doorProxy, ours+", PostgreSQL", replays, doors, "server").Median(), 0)},
		{"the same of a bare proxy and the service", number(r.stat("doors", doorProxy, "bare proxy", newCalls, doors, "server").Median(), 0)},
	})
	m.line("Bodies of requests and answers that are under way come on top, up to `--max-spool` in files and 64 KiB of each in memory. [Deploy the proxy](deploy.md#memory) says how it limits its memory.")
	return m.String()
}

func groupsOf() (all []string) {
	for _, s := range sizedStores {
		all = append(all, s.group)
	}
	return all
}

// perCore is how often a second a core can do a work of so many microseconds.
func perCore(micros float64) string {
	if micros == 0 {
		return ""
	}
	return number(math.Round(million/micros/100)*100, 0)
}

// skew is the load of the fullest of n shards in its worst second, in units of an equal
// share, as simulated for the next larger number of shards.
func (r *report) skew(n int) float64 {
	if n == 1 {
		return 1
	}
	for _, f := range r.of("shards", "", "", eachKeyOnce, 0) {
		if f.N >= n {
			return f.Values["most"].Median()
		}
	}
	return 0
}

// shardsFor is the smallest number of shards of which the fullest gets at most rate
// calls in its worst second at the peak; 0 if more were needed than were simulated.
func (r *report) shardsFor(rate float64) int {
	for n := 1; r.skew(n) > 0; n++ {
		if peak()*(1+replayRate)*r.skew(n)/float64(n) <= rate {
			return n
		}
	}
	return 0
}

func scalePage(r *report, charts map[string]string) string {
	m := &markdown{}
	m.line("# A billion keys a day")
	m.line("The shards, processors and disks that %s keys a day need on each store. No machine of ours has carried out that many: **the figures of this page are extrapolated** from the [benchmarks](benchmarks.md) of one machine with two cores, and from a simulation of shards. %s", thousands(keysADay), generated)
	m.line("## Assumptions")
	m.table(1, []string{"", ""}, [][]string{
		{"new calls a second, on average", number(average(), 0)},
		{"peak factor: the busiest second has so many times the average", fmt.Sprint(peakFactor)},
		{"new calls in the busiest second", number(peak(), 0)},
		{"replays for each new call", number(replayRate, 1)},
		{"share of a measured rate that a server is to have at the peak", number(usable, 1)},
		{"retention", "24 h and 7 days"},
	})
	m.line("A server of yours has other cores, disks and networks. Measure its rate, put it in the place of ours, and divide.")
	m.line("## Shards")
	m.line("[`shardstore`](../store/shardstore/) chooses the shard of a key by a hash of it. The simulation asks it for the shards of %s keys and counts, second by second at the peak, the calls of the fullest shard. 1.00 is an equal share. Made on %s at commit `%s`: `cd test && go run ./benchmarks -out ../docs -only shards`.", thousands(r.keys()), r.date("shards"), r.commit("shards"))
	var rows [][]string
	p := panel{title: "fullest shard in its worst second; 1 is an equal share", x: "shards", log: true}
	worst, hot := series{name: eachKeyOnce, bold: true}, series{name: someOften}
	for _, n := range names(r.of("shards", "", "", "", 0), func(f *Figure) int { return f.N }) {
		single, often := r.stat("shards", "", "", eachKeyOnce, n, "most"), r.stat("shards", "", "", someOften, n, "most")
		rows = append(rows, []string{fmt.Sprint(n), number(r.stat("shards", "", "", eachKeyOnce, n, "share").Median(), 3), number(r.stat("shards", "", "", eachKeyOnce, n, "second").Median(), 3),
			number(single.Median(), 3), number(peak()*single.Median()/float64(n), 0), number(r.stat("shards", "", "", someOften, n, "share").Median(), 2), number(often.Median(), 2)})
		p.ticks, worst.values, hot.values = append(p.ticks, fmt.Sprint(n)), append(worst.values, single), append(hot.values, often)
	}
	p.series = []series{worst, hot}
	charts["shards"] = chart("Skew of keys over shards", p)
	m.line("![Load of the fullest shard over the number of shards](images/benchmarks/shards.svg)")
	m.table(1, []string{"shards", "all keys", "median second", "worst second", "calls in the worst second", "some keys often: all", "worst second"}, rows)
	m.line("In the last two columns the calls go to keys by Zipf's law with the exponent %.1f, so that a few keys have many of them. No number of shards spreads one key. The replays of such a key are served from memory by [`nearcache`](../store/nearcache/).", zipfExponent)
	m.line("## Each store")
	m.line("The measured rate counts new calls with %s on two cores, which the callers and the server share, so a server alone does more. Shards are the fewest of which the fullest stays under %.0f %% of that rate in its worst second. Cores are the processor time of the peak, divided by %.1f.", plural(r.most("stores"), "caller"), usable*100, usable)
	rows = nil
	for _, s := range sizedStores {
		rate := r.stat("stores", s.group, ours, newCalls, r.most("stores"), "rate").Median()
		newClient, newServer := r.busy(s.group, newCalls)
		oldClient, oldServer := r.busy(s.group, replays)
		cores := func(fresh, old float64) string {
			return number(math.Ceil(peak()*(fresh+replayRate*old)/million/usable), 0)
		}
		small, large := r.stat("sizes", s.bytes, "", noAnswer, 0, "bytes").Median(), r.stat("sizes", s.bytes, "", kibAnswer, 0, "bytes").Median()
		row := []string{s.group, number(rate, 0), fmt.Sprint(r.shardsFor(rate * usable)), cores(newClient, oldClient), cores(newServer, oldServer),
			size(small*keysADay) + " to " + size(large*keysADay), size(small*keysADay*7) + " to " + size(large*keysADay*7)}
		switch {
		case s.group == dynamoStub:
			row[1], row[2], row[4] = "", "", "AWS"
		case row[2] == "0":
			row[2] = fmt.Sprintf("more than %d", r.most("shards"))
		}
		if s.group == sqliteLeased {
			row[4] = ""
		}
		rows = append(rows, row)
	}
	m.table(1, []string{"store", "measured new calls a second", "shards", "cores of the clients", "cores of the servers", "records of 24 h: no answer to 1 KiB", "of 7 days"}, rows)
	log := r.stat("sizes", postgresLeased, "", noAnswer, 0, "log").Median() * keysADay
	m.item("**SQLite**: each shard is a file with a process and a disk of its own. Files on one disk share its syncs, so that the shards of one machine do not add up. A service with that many keys is better off with a database server.")
	m.item("**PostgreSQL**: besides, at least %s of write-ahead log a day, in a new table. A sweep has to remove %s records a second on average, over all shards. One pass removed %s a second beside traffic in the largest table that was measured; it rests for three quarters of its time, which `sweep.Options.Rest` changes. [Growth](benchmarks.md#growth) has the rates in tables up to that size, and [0026](decisions/0026-large-tables.md) has some of 100 million.", size(log), number(average(), 0), number(r.swept(postgresLeased), 0))
	m.item("**Redis**: the records are in memory, so their size decides, and not the rate. A fail-over may lose the last changes ([guarantees](guarantees.md)).")
	m.item("**DynamoDB**: the table decides about the rate. %s new calls and the replays need %s write units in the busiest second, four for a new call and one for a replay; [what it costs](dynamodb.md#what-it-costs) counts them and has the price of a million.", number(peak(), 0), number(peak()*(4+replayRate), 0))
	return m.String()
}

// swept is how many records a second the sweep of the largest table removed.
func (r *report) swept(group string) float64 {
	n := 0
	for _, f := range r.of("growth", group, "", "sweep", 0) {
		n = max(n, f.N)
	}
	return r.stat("growth", group, "", "sweep", n, "deleted").Median() / max(r.stat("growth", group, "", "sweep", n, "seconds").Median(), 1e-9)
}

// keys is how many keys were simulated.
func (r *report) keys() int { return int(r.stat("shards", "", "", eachKeyOnce, 0, "keys").Median()) }

func (r *report) commit(section string) string {
	if res := r.sections[section]; res != nil {
		return res.Commit
	}
	return ""
}

func (r *report) date(section string) string {
	if res := r.sections[section]; res != nil {
		return res.Date
	}
	return ""
}
