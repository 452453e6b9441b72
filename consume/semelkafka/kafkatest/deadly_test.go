package kafkatest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/internal/proctest"
)

// dieOf ends the process if a message is one that it does not survive. On most
// systems nothing of it runs any more, not even what is deferred.
func (k *task) dieOf(ms []*consume.Message, say func(string)) {
	if k.Deadly == "" || !slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == k.Deadly }) {
		return
	}
	say(fmt.Sprintf("dies with %d", len(ms)))
	if self, err := os.FindProcess(os.Getpid()); err == nil && !k.Exits {
		_ = self.Kill()
		select {}
	}
	os.Exit(1)
}

// tended are members, of which each that dies has a successor.
type tended struct {
	k      *task
	procs  []*proctest.Process
	deaths int
}

func (m *tended) tend(t *testing.T) {
	t.Helper()
	for i, p := range m.procs {
		select {
		case <-p.Ended():
			m.deaths++
			m.procs[i] = m.k.spawn(t)
		default:
		}
	}
}

// A message kills each process that handles it: by a signal, or by os.Exit. It is
// a dead letter in the end, and all others have their effect, once and in order.
func TestServeBatches_MessageKillsMembers_DeadLetters(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		const orderKeys, each, most, deadly = 4 * partitions, 40, 3, "00/000021"
		br, b := open(t, seed), openBank(t)
		k := &task{Seed: seed, Name: br.name, Ledger: filepath.Join(t.TempDir(), "ledger"), Bank: b.url, Schema: b.schema, Form: f, Deadly: deadly, Exits: f == offsets, MaxAttempts: most}
		if err := os.WriteFile(k.Ledger, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		send := func(from int) {
			for orderKey := range orderKeys {
				var ms []consume.Message
				for i := from; i < from+each; i++ {
					ms = append(ms, msg(fmt.Sprintf("%02d/%06d", orderKey, i), fmt.Sprint("lane ", orderKey)))
				}
				br.to(t, int32(orderKey%partitions), ms...)
			}
		}
		send(1)
		members := &tended{k: k, procs: make([]*proctest.Process, 2)}
		for i := range members.procs {
			members.procs[i] = k.spawn(t)
		}
		settled := func() {
			t.Helper()
			until(t, "all messages acked", func() bool {
				members.tend(t)
				return br.Unsettled(t) == 0
			})
		}
		settled()
		deaths := members.deaths
		send(1 + each)
		settled()
		if members.deaths != deaths {
			t.Errorf("%d members died behind the message", members.deaths-deaths)
		}
		effects := b.effects(t)
		wantKeysInOrder(t, effects)
		if len(effects) != 2*orderKeys*each-1 || slices.Contains(effects, deadly) {
			t.Errorf("%d effects, want %d", len(effects), 2*orderKeys*each-1)
		}
		letters := br.Copies(t, driver.DeadLetter)
		if len(letters) != 1 || string(letters[0].Body) != deadly {
			t.Fatalf("%d letters", len(letters))
		}
		if got, _ := letters[0].Header(driver.LetterReason); got != string(driver.ReasonExhausted) {
			t.Errorf("header %s is %q, want %q", driver.LetterReason, got, driver.ReasonExhausted)
		}
		// If the member that stored the failure loses the partition before it sends the
		// letter, the next one finds the failure, and has made no attempt.
		if got, _ := letters[0].Header(driver.LetterAttempts); got != fmt.Sprint(most) && got != "0" {
			t.Errorf("header %s is %q, want %d, or 0", driver.LetterAttempts, got, most)
		}
		text, err := os.ReadFile(k.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		alone := strings.Count(string(text), "dies with 1\n")
		t.Logf("%d deaths, %d of them alone", deaths, alone)
		// Before the first note it may die once, and with the first two; each of
		// these may have come further than the one before.
		if alone < most || deaths > most+6 {
			t.Errorf("%d members died, %d of them with the message alone, want %d", deaths, alone, most)
		}
	})
}

// A member that ends in order has not died: it leaves no beginning, though it has
// got past nothing.
func TestServeBatches_OrderlyEnd_LeavesNoCrashMarker(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, f form) {
		_, seed := fake(t)
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, msg("a", ""))
		var failed atomic.Int64
		stop := b.member(t, f, br.source(t, nil), func(context.Context, pgx.Tx, []*consume.Message) error {
			failed.Add(1)
			return errDead
		}, &consume.Options{MaxAttempts: -1})
		begun := func() (n int) {
			if err := b.pool.QueryRow(t.Context(), "SELECT coalesce(sum(starts), -1) FROM "+pgx.Identifier{b.schema, "semel_crash_marker"}.Sanitize()).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		until(t, "failed", func() bool { return failed.Load() > 1 })
		if n := begun(); n != 1 {
			t.Errorf("%d beginnings, want 1", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := begun(); n != 0 {
			t.Errorf("at the end %d beginnings are left", n)
		}
	})
}
