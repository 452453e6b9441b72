package sqlitestore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// body is a result as a small API gives it.
var body = []byte(fmt.Sprintf(`{"id":"pay_0123456789abcdef","status":"succeeded","amount":1299,"currency":"eur","note":"%0100d"}`, 0))

// contender runs one operation: a claim of a new key, or of one that it has
// had, and the settlement.
type contender interface {
	first(key string) error
	again(key string) error
}

// ours is the store.
type ours struct{ s *Store }

func (o ours) first(key string) error {
	ctx := context.Background()
	f, err := o.s.Claim(ctx, benchProposal(key))
	if err != nil || !f.Won {
		return fmt.Errorf("claim: won %v, error %v", f.Won, err)
	}
	return o.s.Settle(ctx, f.Record.Lease(), store.Settlement{
		State: store.Completed, Attempt: 1, Keep: time.Hour, Outcome: store.Outcome{Code: 201, Codec: "json", Body: body},
	})
}

func (o ours) again(key string) error {
	f, err := o.s.Claim(context.Background(), benchProposal(key))
	if err != nil || f.Won || len(f.Record.Outcome.Body) != len(body) {
		return fmt.Errorf("duplicate: won %v, error %v", f.Won, err)
	}
	return nil
}

func benchProposal(key string) store.Proposal {
	p := proposal(key)
	p.Fingerprint = store.Fingerprint{Alg: "hmac-sha256", KeyID: "k1", Sum: string(body[:32])}
	return p
}

// plain is what one would write without a library: a commit for each step,
// prepared statements, one connection for writers, and the same durability.
type plain struct{ claim, find, settle *sql.Stmt }

func newPlain(t testing.TB) plain {
	dsn := "file:" + filepath.Join(t.TempDir(), "plain.db") + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"
	open := func(conns int) *sql.DB {
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(conns)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	w, r := open(1), open(4)
	mustExec(t, w, `CREATE TABLE idempotency (id BLOB PRIMARY KEY, state INTEGER NOT NULL, owner BLOB NOT NULL,
		fingerprint BLOB NOT NULL, lease_until INTEGER NOT NULL, expires INTEGER, code INTEGER, body BLOB)`)
	prepare := func(db *sql.DB, query string) *sql.Stmt {
		st, err := db.Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	return plain{
		claim:  prepare(w, `INSERT INTO idempotency (id, state, owner, fingerprint, lease_until) VALUES (?, 1, ?, ?, ?) ON CONFLICT DO NOTHING`),
		find:   prepare(r, `SELECT state, fingerprint, code, body FROM idempotency WHERE id = ?`),
		settle: prepare(w, `UPDATE idempotency SET state = 2, expires = ?, code = ?, body = ? WHERE id = ? AND owner = ? AND state = 1`),
	}
}

func (p plain) first(key string) error {
	id, owner, now := sha256.Sum256([]byte(key)), newOwner(), time.Now()
	if err := exactlyOne(affected(p.claim.Exec(id[:], owner[:], body[:32], now.Add(time.Minute).UnixMicro()))); err != nil {
		return err
	}
	return exactlyOne(affected(p.settle.Exec(now.Add(time.Hour).UnixMicro(), 201, body, id[:], owner[:])))
}

func (p plain) again(key string) error {
	id, owner := sha256.Sum256([]byte(key)), newOwner()
	if n, err := affected(p.claim.Exec(id[:], owner[:], body[:32], time.Now().UnixMicro())); err != nil || n != 0 {
		return fmt.Errorf("duplicate: inserted %d, error %v", n, err)
	}
	var state, code int
	var sum, got []byte
	return p.find.QueryRow(id[:]).Scan(&state, &sum, &code, &got)
}

// round is how many operations a second c finishes with n goroutines.
func round(b *testing.B, c contender, n, duplicates int, d time.Duration) float64 {
	return roundOf(b, c, n, duplicates, d, func(i int64) string { return fmt.Sprintf("order-%016x", i) })
}

func roundOf(b *testing.B, c contender, n, duplicates int, d time.Duration, keyOf func(i int64) string) float64 {
	var done, failed atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range n {
		all.Go(func() {
			for i := 0; time.Since(start) < d; i++ {
				key := keyOf(benchKey.Add(1))
				op := c.first(key)
				for range duplicates {
					if op == nil {
						done.Add(1)
						op = c.again(key)
					}
				}
				if op != nil {
					failed.Add(1)
					b.Error(op)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

var benchKey atomic.Int64

// BenchmarkAgainstPlain compares the store with one autocommit a step, at the
// same durability: medians of interleaved rounds, in one run.
func BenchmarkAgainstPlain(b *testing.B) {
	const rounds = 9
	for _, n := range []int{1, 16, 64, 256} {
		for _, duplicates := range []int{0, 1} {
			b.Run(fmt.Sprintf("goroutines=%d/duplicates=%d", n, duplicates), func(b *testing.B) {
				s, p := ours{openNew(b, nil)}, newPlain(b)
				var us, them []float64
				for b.Loop() {
					for range rounds {
						them = append(them, round(b, p, n, duplicates, 300*time.Millisecond))
						us = append(us, round(b, s, n, duplicates, 300*time.Millisecond))
					}
				}
				b.ReportMetric(median(us), "ops/s")
				b.ReportMetric(median(them), "plain-ops/s")
				b.ReportMetric(median(us)/median(them), "ratio")
			})
		}
	}
}

// BenchmarkOrderOfKeys compares new keys that tell their order with random ones, in a
// table of half a million records.
func BenchmarkOrderOfKeys(b *testing.B) {
	const rows, rounds = 500_000, 9
	random := func(int64) string { return fmt.Sprintf("%016x-%016x", rand.Uint64()|1<<63, rand.Uint64()|1<<63) }
	ordered := func(i int64) string { return fmt.Sprint("order-", i) }
	s := ours{openNew(b, nil)}
	for from := benchKey.Load(); benchKey.Load() < from+rows; {
		roundOf(b, s, 512, 0, time.Second, random)
	}
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			var in, no []float64
			for b.Loop() {
				for range rounds {
					in = append(in, roundOf(b, s, n, 0, 500*time.Millisecond, ordered))
					no = append(no, roundOf(b, s, n, 0, 500*time.Millisecond, random))
				}
			}
			b.ReportMetric(median(in), "ops/s")
			b.ReportMetric(median(no), "random-ops/s")
			b.ReportMetric(median(in)/median(no), "ratio")
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
