//go:build unix

package kafkatest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/twmb/franz-go/pkg/kgo"
)

// bankSoak is a topic with records, of which many are there twice, and members
// that share it, of which one after the other dies.
func bankSoak(t *testing.T, seed, where string, f form) {
	messages, kills, limit := size()
	messages /= 2
	if f == naked {
		kills = min(kills, 6)
	}
	br, b := open(t, seed), openBank(t)
	k := task{Seed: seed, Name: br.name, Ledger: filepath.Join(t.TempDir(), "ledger"), Bank: b.url, Schema: b.schema, Form: f}
	if err := os.WriteFile(k.Ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	records := 0
	send := func(i int) {
		m := msg(fmt.Sprintf("m%d", i), "")
		r := br.record(&m)
		r.Partition = int32(i % partitions)
		br.cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		records++
	}
	began := time.Now()
	members := make([]*proctest.Process, 3)
	for i := range members {
		members[i] = k.spawn(t)
	}
	for round := range kills + 1 { // it is published while they die
		for i := round * messages / (kills + 1); i < (round+1)*messages/(kills+1); i++ {
			send(i)
			if i%10 < 3 {
				send(rand.N(i + 1))
			}
		}
		if err := br.cl.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if round == kills {
			break
		}
		before := len(b.effects(t))
		untilBy(t, limit, "some progress", func() bool { return len(b.effects(t)) > before || br.Unsettled(t) == 0 })
		members[round%len(members)].Kill()
		members[round%len(members)] = k.spawn(t)
	}
	untilBy(t, limit, "all messages acked", func() bool { return br.Unsettled(t) == 0 })
	took := time.Since(began)
	want := messages
	if f == offsets { // each record is one
		want = records
	}
	var rows, distinct int
	of := "key"
	if f == offsets {
		of = "(part, at)"
	}
	if err := b.pool.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT "+of+") FROM "+b.table()).Scan(&rows, &distinct); err != nil {
		t.Fatal(err)
	}
	lost, double := want-distinct, rows-distinct
	if f == naked {
		if double == 0 || lost > 0 {
			t.Errorf("%d are double and %d are lost: the soak proves nothing", double, lost)
		}
		report(t, figure{Claim: "without deduplication a duplicate is in PostgreSQL twice", Where: where + ", PostgreSQL", Trials: messages, Failures: double, Control: true})
		return
	}
	if lost != 0 || double > 0 {
		t.Errorf("of %d, %d are lost and %d are double", want, lost, double)
	}
	if n := len(br.records(t, br.opt.DeadLetters)) + len(br.records(t, br.opt.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	claim := "a message published up to twice, to members that are killed, is in PostgreSQL exactly once, by its key"
	if f == offsets {
		claim = "a record, read by members that are killed, is in PostgreSQL exactly once, by its offset"
	}
	report(t, figure{Claim: claim, Where: where + ", PostgreSQL", Trials: want, Failures: lost + double,
		Detail: fmt.Sprintf("%d kills -9, %d records, %.0f records/s", kills, records, float64(records)/took.Seconds())})
}

// untilBy is until with a limit of its own.
func untilBy(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", limit, what)
		}
	}
}

// Members die under load, with one batch in its transaction and the next taken
// ahead. Another member handles the messages of both, once and in order.
func TestServeBatches_MembersDieDuringLookAhead_RunOnce(t *testing.T) {
	t.Parallel()
	_, seed := longFake(t)
	const orderKeys = 30
	n, kills := 40_000, 6
	if testing.Short() {
		n, kills = 20_000, 2 // after the last kill 10,000 messages are left, as in the long form
	}
	br, b := open(t, seed), openBank(t)
	send := func(i int) {
		m := msg(fmt.Sprintf("%02d/%06d", i%orderKeys, i), fmt.Sprint("lane ", i%orderKeys))
		r := br.record(&m)
		r.Partition = int32(i % orderKeys % partitions)
		br.cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	for i := range n {
		if send(i); i%10 < 3 {
			send(rand.N(i + 1))
		}
	}
	if err := br.cl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	k := task{Seed: seed, Name: br.name, Ledger: filepath.Join(t.TempDir(), "ledger"), Schema: b.schema, Form: keyed, Outstanding: 4 * semelkafka.MaxBatch}
	if err := os.WriteFile(k.Ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	members := map[string]*proctest.Process{} // by the name that the server knows them by
	spawn := func(i int) {
		name := fmt.Sprintf("%s_%d", br.name, i)
		k.Bank = b.url + "&application_name=" + name
		members[name] = k.spawn(t)
	}
	spawn(0)
	spawn(1)
	for i := range kills {
		until(t, "some progress", func() bool { return len(b.effects(t)) > (i+1)*n/(kills+2) })
		until(t, "a batch looked for while another is handled", func() bool {
			who := b.looksAhead(t, members)
			if who == "" {
				return false
			}
			delete(members, who)
			spawn(2 + i)
			return true
		})
	}
	br.settled(t)
	effects := b.effects(t)
	wantKeysInOrder(t, effects)
	if len(effects) != n {
		t.Errorf("%d effects of %d", len(effects), n)
	}
	if n := len(br.records(t, br.opt.DeadLetters)) + len(br.records(t, br.opt.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
}

// looksAhead holds up the handlers of the members, and kills one that has looked
// for its next batch meanwhile, and has keys of it; "": none had, for as long as such a look is kept.
func (b *bank) looksAhead(t *testing.T, members map[string]*proctest.Process) string {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+b.table()+" IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(members))
	for end := time.Now().Add(time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		rows, err := b.pool.Query(t.Context(), `SELECT look.application_name FROM pg_stat_activity look JOIN pg_stat_activity handler USING (application_name)
			WHERE application_name = ANY($1) AND look.state = 'idle in transaction' AND handler.wait_event_type = 'Lock'
			AND look.pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`, names)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			members[found[0]].Kill()
			return found[0]
		}
	}
	return ""
}

func TestServeBatches_MembersDie_EachEffectOnce(t *testing.T) {
	t.Parallel()
	for _, f := range []form{keyed, offsets, naked} {
		t.Run(string(f), func(t *testing.T) {
			_, seed := fake(t)
			bankSoak(t, seed, "kfake", f)
		})
	}
}

func TestServeBatches_MembersDieOnARealKafka_EachEffectOnce(t *testing.T) {
	t.Parallel()
	seed := real(t)
	for _, f := range []form{keyed, offsets, naked} {
		t.Run(string(f), func(t *testing.T) { bankSoak(t, seed, "Apache Kafka", f) })
	}
}

func TestServeBatches_MemberFrozenOnARealKafka_IsRefused(t *testing.T) {
	t.Parallel()
	seed := real(t)
	for _, f := range []form{keyed, offsets} {
		t.Run(string(f), func(t *testing.T) { freeze(t, seed, "Apache Kafka", f, inTheMiddle, 20) })
	}
}
