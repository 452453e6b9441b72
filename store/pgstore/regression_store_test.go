package pgstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/sweep"
)

// Only who meets a locked row waits for it.
func TestSwap_OtherRowLocked_NotDelayed(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{LockTimeout: 10 * time.Minute})
	var recs []store.Record
	for i := range 3 {
		recs = append(recs, claim(t, s, itoa(i)))
	}
	free := claim(t, s, "free")
	release := holdRows(t, s, "0", "1", "2")
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() { _, _ = s.Swap(t.Context(), recs[i].Seen(), proposal(itoa(i))) })
	}
	waitFor(t, "they wait", func() bool { return len(s.waitSlots) == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Swap(ctx, free.Seen(), proposal("free")); err != nil {
		t.Errorf("a stranger's swap: %v", err)
	}
	release()
	wg.Wait()
}

// The second must see what the first has made.
func TestMigrate_Concurrent_AnyIsolation(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	name := newSchema(t, url)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(context.Background(), url+sep+"default_transaction_isolation=repeatable%20read", &Options{Schema: name})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
}

// Only claims are relaxed, and refused.
func TestRelaxedClaims_OthersClaim_Parked(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{RelaxedClaims: true})
	strict := openAt(t, s.appPool.Config().ConnString(), &Options{Schema: s.options.Schema})
	pr := proposal("k")
	pr.Policy, pr.Lease = 1, time.Microsecond
	if f, err := strict.Claim(t.Context(), pr); err != nil || !f.Won {
		t.Fatal(err)
	}
	_, err := sweep.Once(t.Context(), s, nil)
	if err != nil {
		t.Error("a relaxed store cannot park what another has claimed")
	}
	for _, to := range []store.State{store.Started, store.Processing} {
		pr := proposal("other")
		pr.Policy, pr.State = store.Park, to
		if _, err := s.Claim(t.Context(), pr); err == nil {
			t.Errorf("a relaxed claim with policy park, of state %v, was taken", to)
		}
	}
}

// Each of it is less.
func TestSettleBatch_LargerThanMessage_Split(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	body := make([]byte, 230<<20)
	var batch []*settleItem
	for i := range 6 {
		r := claim(t, s, itoa(i))
		l := r.Lease()
		c := completion("small")
		if i > 0 {
			c.Outcome.Body = body
		}
		req, err := newSettleRequest(&l, &c)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, &settleItem{Req: req})
	}
	s.flushSettles(context.Background(), batch)
	for i, it := range batch {
		if it.Err != nil && it.Err != errSendAlone {
			t.Errorf("%d: %.200v", i, it.Err)
		}
	}
}

// Open refuses values on which the server or the migration would fail.
func TestOptions_ServerLimits_Refused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*Options{
		"dollars": {Schema: "a$$b"}, "lines": {Schema: "a\nb"}, "locks": {LockTimeout: 30 * 24 * time.Hour}, "idle": {MaxIdleTx: 30 * 24 * time.Hour},
	} {
		if s, err := Open(t.Context(), pgtest.URL(t), o); err == nil {
			t.Errorf("%s: opened", name)
			_ = s.Close()
		}
	}
}
