//go:build unix

package cli

import (
	"database/sql"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// customers send each key, and duplicates of all earlier ones, through whichever proxies
// there are. Each request is sent again until it is answered.
type customers struct {
	t     *testing.T
	addrs [2]string
	tr    http.RoundTripper
	seed  maphash.Seed

	sent     atomic.Int64
	repeats  atomic.Int64
	differ   atomic.Int64    // answers other than the key's first
	answers  []atomic.Uint64 // the hash of each key's first answer
	enough   atomic.Int64    // the number of keys after which they stop
	all      sync.WaitGroup
	replayed atomic.Int64
}

func newCustomers(t *testing.T, addrs [2]string, keys int) *customers {
	c := &customers{t: t, addrs: addrs, tr: wire(t), seed: maphash.MakeSeed(), answers: make([]atomic.Uint64, 4*keys)}
	c.enough.Store(int64(len(c.answers)))
	for range 24 {
		c.all.Go(c.work)
	}
	return c
}

func (c *customers) work() {
	for {
		n := c.sent.Add(1)
		if n > c.enough.Load() {
			c.sent.Add(-1)
			return
		}
		c.pay(n - 1)
		c.repeats.Add(1)
		c.pay(rand.N(n))
	}
}

// pay sends a key until it is answered.
func (c *customers) pay(n int64) {
	for !c.t.Failed() {
		r, err := post(c.t.Context(), c.tr, c.addrs[rand.N(2)], "/pay", fmt.Sprint("k", n), `{"amount":1}`)
		switch {
		case err != nil || r.status == http.StatusConflict || r.status >= 500:
			<-time.After(5 * time.Millisecond) // a proxy is away, or the key is claimed
			continue
		case r.status != http.StatusCreated:
			c.t.Errorf("k%d: %d %s", n, r.status, r.body)
			return
		}
		if r.replayed() {
			c.replayed.Add(1)
		}
		sum := maphash.String(c.seed, r.body) | 1
		if !c.answers[n].CompareAndSwap(0, sum) && c.answers[n].Load() != sum {
			c.differ.Add(1)
		}
		return
	}
}

// reach waits until so many keys were sent.
func (c *customers) reach(keys int) {
	c.t.Helper()
	eventually(c.t, time.Hour, fmt.Sprint(keys, " keys"), func() bool { return c.t.Failed() || c.sent.Load() >= int64(keys) })
}

// move is a service whose proxies move from a SQLite file to PostgreSQL.
type move struct {
	t        *testing.T
	bank     *bank
	old, new string
	records  *sql.DB // the new store's
	addrs    [2]string
	proxies  [2]*proc
	kills    int // of copies
}

func newMove(t *testing.T) *move {
	m := &move{t: t, bank: newBank(t), old: "sqlite:" + filepath.Join(t.TempDir(), "old.db"), new: pgtest.Start(t, pgtest.Fast...).URL()}
	var err error
	if m.records, err = sql.Open("pgx", m.new); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.records.Close() })
	for i := range m.addrs {
		m.addrs[i] = freeAddr(t)
	}
	return m
}

// start starts a proxy.
func (m *move) start(i int, args ...string) {
	m.t.Helper()
	m.proxies[i] = start(m.t, append([]string{"--listen", m.addrs[i], "--upstream", m.bank.URL, "--scope", "single", "--lease", "2s", "--wait", "1s",
		"--on-doubt", "park", "--reconcile-url", m.bank.URL + "/reconcile", "--reconcile-every", "200ms"}, args...)...)
}

// rows counts the records of the new store; 0 if it has no table.
func (m *move) rows() (n int) {
	_ = m.records.QueryRowContext(m.t.Context(), "SELECT count(*) FROM semel.semel_record").Scan(&n)
	return n
}

// copy runs semel copy, and kills it after it has copied some, or returns its exit code.
func (m *move) copy(killAfter int, args ...string) (code int, killed bool) {
	m.t.Helper()
	before := m.rows()
	p := spawn(m.t, append([]string{"copy", "--from", m.old, "--to", m.new, "--workers", "4"}, args...)...)
	for {
		select {
		case <-p.done:
			return p.cmd.ProcessState.ExitCode(), false
		case <-time.After(2 * time.Millisecond):
		}
		if killAfter > 0 && m.rows() >= before+killAfter {
			p.kill()
			m.kills++
			return 0, true
		}
	}
}

// moveKeys is how many keys are sent.
func moveKeys() int {
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		return 1_000_000
	}
	return 20_000
}

// A service moves from SQLite to PostgreSQL while clients send requests and duplicates: a
// copy runs beside the old store and is killed twice, one proxy stops and one is killed,
// both start with the new store and --moved-from, the rest is copied and compared, and
// both start again without it. Each key takes effect once, and has one answer.
func TestCampaign_Move_EachKeyTakesEffectOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("long; run it without -short")
	}
	keys := moveKeys()
	m := newMove(t)
	for i := range m.proxies {
		m.start(i, "--store", m.old)
	}
	c := newCustomers(t, m.addrs, keys)

	c.reach(keys * 3 / 10)
	for range 2 {
		if _, killed := m.copy(keys / 50); !killed {
			t.Error("the copy ended before it was killed")
		}
	}
	m.copy(0)
	copied := m.rows()

	c.reach(keys * 6 / 10)
	atSwitch := c.sent.Load()
	m.proxies[0].signal(syscall.SIGTERM)
	m.proxies[1].kill() // its requests in flight stay claimed in the old store
	if code := m.proxies[0].exit(time.Minute); code != 0 {
		t.Errorf("the first proxy ended with %d", code)
	}
	for i := range m.proxies {
		m.start(i, "--store", m.new, "--moved-from", m.old)
	}
	c.reach(keys * 7 / 10)
	m.copy(keys / 100)
	rounds := 1
	eventually(t, time.Hour, "a copy that leaves nothing", func() bool {
		code, _ := m.copy(0, "--verify")
		rounds++
		return code == 0 || t.Failed()
	})
	for i := range m.proxies {
		m.proxies[i].signal(syscall.SIGTERM)
		m.proxies[i].exit(time.Minute)
		m.start(i, "--store", m.new)
	}
	c.enough.Store(max(int64(keys), c.sent.Load()))
	c.all.Wait()
	m.bank.busy.Wait()

	sent := c.sent.Load()
	effects, twice := m.bank.count()
	if int64(effects) != sent || twice != 0 || c.differ.Load() != 0 {
		t.Errorf("%d keys had %d effects, %d of them more than one; %d answers differed", sent, effects, twice, c.differ.Load())
	}
	if copied == 0 || copied >= int(atSwitch) || c.replayed.Load() == 0 {
		t.Errorf("%d records were copied before the switch, at which %d keys had been sent; %d replays", copied, atSwitch, c.replayed.Load())
	}
	t.Logf(`evidence: {"claim":"a service that moves to another store has one effect for each key","where":"proxies from SQLite to PostgreSQL","trials":%d,"failures":%d,"detail":"%d duplicates, %d replays; %d kills of the copy and one of a proxy; %d records copied before the switch at %d keys, %d rounds after it"}`,
		sent, twice, c.repeats.Load(), c.replayed.Load(), m.kills, copied, atSwitch, rounds)
}

// Without --moved-from and without a copy, duplicates of earlier keys take effect again.
func TestCampaign_MoveWithoutOldStore_Doubles(t *testing.T) {
	if testing.Short() {
		t.Skip("long; run it without -short")
	}
	const keys = 2000
	m := newMove(t)
	for i := range m.proxies {
		m.start(i, "--store", m.old)
	}
	c := newCustomers(t, m.addrs, keys)
	c.reach(keys / 2)
	for i := range m.proxies {
		m.proxies[i].signal(syscall.SIGTERM)
	}
	for i := range m.proxies {
		m.proxies[i].exit(time.Minute)
		m.start(i, "--store", m.new)
	}
	c.enough.Store(max(keys, c.sent.Load()))
	c.all.Wait()
	m.bank.busy.Wait()
	_, twice := m.bank.count()
	if twice == 0 {
		t.Error("no key took effect twice, so the campaign shows nothing")
	}
	t.Logf(`evidence: {"control":true,"claim":"a service that moves to another store without --moved-from has more than one effect for some keys","where":"proxies from SQLite to PostgreSQL","trials":%d,"failures":%d}`, c.sent.Load(), twice)
}
