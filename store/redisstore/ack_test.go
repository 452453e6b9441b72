package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// doubtful is a store that wants an acknowledgement which nobody gives: the
// shared server has no replicas. The other handle wants none.
func doubtful(t *testing.T) (strict, other *Store) {
	o := Options{Prefix: newPrefix(), Replicas: 1, AckTimeout: 10 * time.Millisecond, AllowPark: true}
	strict = openNew(t, &o)
	return strict, openOn(t, strict.client, &Options{Prefix: o.Prefix, AllowPark: true})
}

func TestClaim_TooFewAcknowledge_IsRefusedAndHoldsKeyUntilLeaseEnds(t *testing.T) {
	s, other := doubtful(t)
	p := proposal("k")
	f, err := s.Claim(t.Context(), p)
	if !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Fatalf("the claim: won %v, error %v", f.Won, err)
	}
	left := get(t, other, "k")
	if left.Owner != p.Owner || left.State != store.Processing {
		t.Errorf("the refused claim left %+v", left)
	}
	if f, err := other.Claim(t.Context(), proposal("k")); err != nil || f.Won {
		t.Errorf("another claim within the lease: won %v, error %v", f.Won, err)
	}
	if _, err := other.Renew(t.Context(), []store.Lease{left.Lease()}, -time.Second); err != nil { // its time is up
		t.Fatal(err)
	}
	left = get(t, other, "k")
	taken, err := other.Swap(t.Context(), left.Seen(), proposal("k"))
	if err != nil || !taken.Won || taken.Record.Fence <= left.Fence {
		t.Errorf("the takeover: won %v, fence %d after %d, error %v", taken.Won, taken.Record.Fence, left.Fence, err)
	}
	if err := s.Settle(t.Context(), left.Lease(), completion("x")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the refused claim settles: %v", err)
	}
}

func TestClaim_SentAgainAndUnacknowledged_IsRefusedAgain(t *testing.T) {
	s, other := doubtful(t)
	p := proposal("k")
	if f, err := other.Claim(t.Context(), p); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if _, err := s.Claim(t.Context(), proposal("k")); errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("a claim that finds another's record: %v", err) // it claims nothing
	}
	if f, err := s.Claim(t.Context(), p); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if got := get(t, other, "k"); got.Owner != p.Owner || got.State != store.Processing {
		t.Errorf("the record is %+v", got)
	}
}

func TestSwap_TooFewAcknowledge_IsRefusedAndStays(t *testing.T) {
	s, other := doubtful(t)
	for _, state := range []store.State{store.Processing, store.Unknown, store.Released, store.Completed} {
		old := claim(t, other, state.String())
		if state != store.Processing {
			end := completion("x")
			end.State = state
			if err := other.Settle(t.Context(), old.Lease(), end); err != nil {
				t.Fatal(err)
			}
			old = get(t, other, state.String())
		}
		p := proposal(state.String())
		for _, sending := range []string{"first", "second"} {
			f, err := s.Swap(t.Context(), old.Seen(), p)
			if !errors.Is(err, ErrNotAcknowledged) || f.Won {
				t.Errorf("%v, %s sending: won %v, error %v", state, sending, f.Won, err)
			}
			if now := get(t, other, state.String()); now.Owner != p.Owner || now.State != store.Processing || now.Fence <= old.Fence {
				t.Errorf("%v, %s sending: the record is %+v", state, sending, now)
			}
		}
		record, _ := other.name(old.Key.Digest())
		if ttl := other.client.TTL(t.Context(), record).Val(); ttl > 0 {
			t.Errorf("%v: Redis would remove the claim after %v", state, ttl)
		}
	}
}

// lateHook answers the first WAIT with 0 and later ones with 1. It forwards claims
// and looks at the settings. Every other command it holds back, and its sender gets
// an error as if the answer were late. It keeps a copy of each change.
type lateHook struct {
	claim *script
	waits int
	sent  [][]any
}

var errLate = errors.New("no answer yet")

func (h *lateHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// keep keeps a command, and reports whether it is forwarded.
func (h *lateHook) keep(cmd redis.Cmder) (forward bool) {
	switch cmd.Name() {
	case "wait", "info", "config": // they change nothing
		return true
	}
	args := cmd.Args()
	h.sent = append(h.sent, args)
	return args[1] == h.claim.sha || args[1] == h.claim.text
}

func (h *lateHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !h.keep(cmd) {
			cmd.SetErr(errLate)
			return errLate
		}
		return next(ctx, cmd)
	}
}

func (h *lateHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if !h.keep(cmd) {
				cmd.SetErr(errLate)
				return errLate
			}
		}
		err := next(ctx, cmds)
		if wait, ok := cmds[len(cmds)-1].(*redis.IntCmd); ok && err == nil {
			wait.SetVal(int64(min(h.waits, 1)))
			h.waits++
		}
		return err
	}
}

// A claim that is refused, sent again and then acknowledged is live. Whatever
// the store sent for it before and the network delivers only now, even twice,
// leaves the record as it is: nothing that arrives late may delete or change it.
func TestClaim_AcknowledgedAtSecondSending_NothingLateChangesIt(t *testing.T) {
	s, _ := doubtful(t)
	plain := redis.NewClient(s.client.(*redis.Client).Options()) // without the hook
	t.Cleanup(func() { _ = plain.Close() })
	other := openOn(t, plain, &Options{Prefix: s.opt.Prefix})
	if err := s.inspectAll(t.Context()); err != nil { // it asks for settings only now and then
		t.Fatal(err)
	}
	if err := s.client.ScriptLoad(t.Context(), s.scripts.claim.text).Err(); err != nil {
		t.Fatal(err)
	}
	h := &lateHook{claim: &s.scripts.claim}
	s.client.AddHook(h)
	p := proposal("k")
	if f, err := s.Claim(t.Context(), p); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Fatalf("the first sending: won %v, error %v", f.Won, err)
	}
	f, err := s.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("the second sending: won %v, error %v", f.Won, err)
	}
	record, _ := s.name(p.Key.Digest())
	live := plain.Get(t.Context(), record).Val()
	if len(h.sent) < 2 || live == "" {
		t.Fatalf("the store sent %d commands and the record has %d bytes: the test sees nothing", len(h.sent), len(live))
	}
	for i, args := range h.sent {
		if err := plain.Do(t.Context(), args...).Err(); err != nil {
			t.Errorf("command %d, late: %v", i, err)
		}
		if now := plain.Get(t.Context(), record).Val(); now != live {
			t.Errorf("command %d, late, made %q of %q: %v", i, now, live, args)
		}
	}
	if f, err := other.Claim(t.Context(), proposal("k")); err != nil || f.Won {
		t.Errorf("a second caller beside it: won %v, error %v", f.Won, err)
	}
	if err := other.Settle(t.Context(), f.Record.Lease(), completion("x")); err != nil {
		t.Errorf("the live claim cannot settle: %v", err)
	}
}

func TestSettle_TooFewAcknowledge_StaysAndIsUnconfirmed(t *testing.T) {
	s, other := doubtful(t)
	r := claim(t, other, "k")
	for range 2 { // and each time again
		if err := s.Settle(t.Context(), r.Lease(), completion("x")); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("%v, want ErrUnconfirmed", err)
		}
		if got := get(t, other, "k"); got.State != store.Completed {
			t.Errorf("it is %v", got.State)
		}
	}
	if err := s.Settle(t.Context(), r.Lease(), completion("another")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("another settlement: %v", err)
	}
	record, _ := s.name(r.Key.Digest())
	if ttl := s.client.TTL(t.Context(), record).Val(); ttl <= 0 || ttl > 2*time.Hour {
		t.Errorf("sent again, Redis keeps it for %v", ttl)
	}
	lapsed := claim(t, other, "park")
	p := proposal("park")
	p.State = store.Unknown
	f, err := s.Swap(t.Context(), lapsed.Seen(), p)
	if !errors.Is(err, ErrUnconfirmed) || get(t, other, "park").State != store.Unknown {
		t.Errorf("parking: won %v, error %v", f.Won, err)
	}
}

func TestRenew_TooFewAcknowledge_IsRefused(t *testing.T) {
	s, other := doubtful(t)
	r := claim(t, other, "k")
	errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour)
	if err != nil || !errors.Is(errs[0], ErrNotAcknowledged) {
		t.Errorf("%v, error %v", errs, err)
	}
}

// With a replica that acknowledges, a claim sent again after a lost reply is
// acknowledged too, though it changes nothing.
func TestReplicas_ReplicaFollows_Acknowledges(t *testing.T) {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+itoa(master.Port()))
	c := clientAt(t, master.URL())
	s := openOn(t, c, &Options{Replicas: 1, AckTimeout: 10 * time.Second})
	waitFor(t, "the replica follows", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "state=online")
	})
	p := proposal("k")
	var f store.Found
	for range 2 {
		var err error
		if f, err = s.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
	}
	if errs, err := s.Renew(t.Context(), []store.Lease{f.Record.Lease()}, time.Minute); err != nil || errs[0] != nil {
		t.Errorf("%v, %v", errs, err)
	}
	for range 2 {
		if err := s.Settle(t.Context(), f.Record.Lease(), completion("x")); err != nil {
			t.Error(err)
		}
	}
	// The replica stops, and its link stays up. A change that is sent again, on a
	// connection that has written nothing, must not count as acknowledged because
	// the replica had earlier changes.
	replica.Freeze()
	defer replica.Thaw()
	q := proposal("frozen")
	g, err := openOn(t, c, nil).Claim(t.Context(), q)
	if err != nil || !g.Won {
		t.Fatalf("won %v, error %v", g.Won, err)
	}
	fresh := func() *Store {
		return openOn(t, clientAt(t, master.URL()), &Options{Replicas: 1, AckTimeout: 50 * time.Millisecond})
	}
	if err := fresh().Settle(t.Context(), f.Record.Lease(), completion("x")); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("a settlement, again: %v", err)
	}
	if g, err := fresh().Claim(t.Context(), q); !errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("a claim, again: won %v, error %v", g.Won, err)
	}
	plain := openOn(t, c, nil)
	held, swapped := claim(t, plain, "held"), proposal("held")
	if f, err := plain.Swap(t.Context(), held.Seen(), swapped); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if f, err := fresh().Swap(t.Context(), held.Seen(), swapped); !errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("a swap, again: won %v, error %v", f.Won, err)
	}
}

// A read of a call in flight answers nobody, so it does not wait for replicas.
func TestGet_ReplicasMissing_DoesNotWait(t *testing.T) {
	s, other := doubtful(t)
	claim(t, other, "k")
	waits := &waitHook{after: func(int) int64 { return 0 }}
	s.client.AddHook(waits)
	if got := get(t, s, "k"); got.State != store.Processing || waits.n != 0 {
		t.Errorf("it is %v, and %d replies had to be waited for", got.State, waits.n)
	}
	if f, err := s.Claim(t.Context(), proposal("k")); err != nil || f.Won || waits.n != 1 {
		t.Errorf("a claim: won %v, error %v, %d waits: the harness is blind", f.Won, err, waits.n)
	}
}
