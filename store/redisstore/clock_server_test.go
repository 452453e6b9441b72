package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// When the server's clock is set forward past a lease, the new owner has a higher
// fence, and the earlier owner can neither renew nor settle. When the clock is set
// back, the owner continues, and a renewed lease ends in time.
func TestServerClock_ServerItselfJumps_LeasesAndFencesHold(t *testing.T) {
	t.Parallel()
	srv, clock := redistest.StartWithClock(t, redistest.Durable...)
	s := openOn(t, clientAt(t, srv.URL()), &Options{AllowPark: true})
	set := func(d time.Duration) {
		t.Helper()
		if err := clock.Set(d); err != nil {
			t.Fatal(err)
		}
	}
	const lease, jump = time.Minute, 10 * time.Minute // as proposal has it
	kept := complete(t, s, "kept", "answer")
	zombie, parks := claim(t, s, "taken"), proposal("parks")
	parks.Policy = store.Park
	if f, err := s.Claim(t.Context(), parks); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}

	set(jump) // both leases are over, though their owners live
	f, err := s.Claim(t.Context(), proposal("taken"))
	if err != nil || f.Won {
		t.Fatalf("won %v, error %v: taken over without a swap", f.Won, err)
	}
	heir, err := s.Swap(t.Context(), f.Record.Seen(), proposal("taken"))
	if err != nil || !heir.Won || heir.Record.Fence <= zombie.Fence {
		t.Fatalf("won %v, error %v, fence %d after %d", heir.Won, err, heir.Record.Fence, zombie.Fence)
	}
	if err := s.Settle(t.Context(), zombie.Lease(), completion("zombie")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the zombie settles: %v", err)
	}
	if errs, err := s.Renew(t.Context(), []store.Lease{zombie.Lease()}, lease); err != nil || !errors.Is(errs[0], store.ErrLeaseLost) {
		t.Errorf("the zombie renews: %v, %v", errs, err)
	}
	parked, err := s.Get(t.Context(), parks.Key)
	if err != nil {
		t.Fatal(err)
	}
	if d := store.Decide(&parked.Record, &store.Call{Fingerprint: parks.Fingerprint}, parked.Now); d.Action != store.DoPark {
		t.Errorf("a claim under park whose lease is over: %v", d.Action)
	}
	// Nobody has, and its owner lives: a late settlement is as good as any.
	if err := s.Settle(t.Context(), parked.Record.Lease(), completion("late")); err != nil {
		t.Errorf("the owner under park, late: %v", err)
	}

	left := claim(t, s, "left behind") // its owner is dead
	set(0)
	for name, r := range map[string]store.Record{"taken": heir.Record, "left behind": left} {
		f, err := s.Get(t.Context(), testKey(name))
		// The lease lasts longer by the jump, and no more than that.
		if rest := f.Record.Until.Sub(f.Now); err != nil || f.Record.Lapsed(f.Now) || rest > lease+jump {
			t.Errorf("%s, after the clock was set back: %v, lapsed %v, %v left", name, err, f.Record.Lapsed(f.Now), rest)
		}
		if r.Owner != f.Record.Owner {
			t.Errorf("%s has another owner", name)
		}
	}
	// A renewal counts from now, so that one whose owner dies after the next
	// renewal is free in its time.
	if errs, err := s.Renew(t.Context(), []store.Lease{heir.Record.Lease()}, lease); err != nil || errs[0] != nil {
		t.Fatalf("%v, %v", errs, err)
	}
	if f, err := s.Get(t.Context(), testKey("taken")); err != nil || f.Record.Until.Sub(f.Now) > lease {
		t.Errorf("renewed, it has %v left, error %v", f.Record.Until.Sub(f.Now), err)
	}
	set(jump + lease)
	if f, err := s.Get(t.Context(), testKey("left behind")); err != nil || !f.Record.Lapsed(f.Now) {
		t.Errorf("when the clock has come there again, lapsed %v, error %v", f.Record.Lapsed(f.Now), err)
	}

	set(-jump)
	left = get(t, s, "left behind")
	next, err := s.Swap(t.Context(), left.Seen(), proposal("left behind"))
	if err != nil || !next.Won || next.Record.Fence <= left.Fence {
		t.Errorf("won %v, error %v, fence %d after %d", next.Won, err, next.Record.Fence, left.Fence)
	}
	if err := s.Settle(t.Context(), heir.Record.Lease(), completion("heir")); err != nil {
		t.Errorf("the heir settles: %v", err)
	}
	for name, body := range map[string]string{"taken": "heir", "parks": "late", "kept": "answer"} {
		if got := get(t, s, name); got.State != store.Completed || string(got.Outcome.Body) != body {
			t.Errorf("%s is %v with %q, want %q", name, got.State, got.Outcome.Body, body)
		}
	}
	if got := get(t, s, "kept"); got.Fence != kept.Fence || !got.Expires.Equal(kept.Expires) {
		t.Errorf("what had ended was changed: %+v\n%+v", got, kept)
	}
}

// After a jump past its retention the outcome has expired, and the key's next
// claim has a higher fence, however far the clock is then set back.
func TestServerClock_JumpsPastRetention_OutcomeExpires(t *testing.T) {
	t.Parallel()
	srv, clock := redistest.StartWithClock(t, redistest.Fast...)
	s := openOn(t, clientAt(t, srv.URL()), &Options{Linger: time.Hour})
	first := complete(t, s, "k", "x") // for an hour
	if err := clock.Set(90 * time.Minute); err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(t.Context(), testKey("k"))
	if err != nil || !f.Record.Expired(f.Now) || f.Record.Lapsed(f.Now) {
		t.Errorf("within Linger: expired %v, error %v", f.Record.Expired(f.Now), err)
	}
	if err := clock.Set(3 * time.Hour); err != nil { // Redis has removed it
		t.Fatal(err)
	}
	again := claim(t, s, "k")
	if again.Fence <= first.Fence {
		t.Errorf("fence %d after %d", again.Fence, first.Fence)
	}
	if err := s.Settle(t.Context(), again.Lease(), completion("y")); err != nil {
		t.Error(err)
	}
	if err := clock.Set(-3 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "k"); string(got.Outcome.Body) != "y" {
		t.Errorf("after the clock was set back it is %q", got.Outcome.Body)
	}
}

// The server counts a WAIT by its clock: one that is under way when that is
// set back lasts for longer, but no call lasts longer than the client's
// ReadTimeout. The claim is not won then, as any that got no answer; sent again
// it is recognized by its owner token, and is refused, because nobody acknowledges it.
func TestServerClock_SetBackDuringWait_CallEndsAfterReadTimeout(t *testing.T) {
	t.Parallel()
	srv, clock := redistest.StartWithClock(t, redistest.Fast...)
	c := redis.NewClient(&redis.Options{Addr: srv.Addr(), MaxRetries: -1, ReadTimeout: 6 * time.Second})
	t.Cleanup(func() { _ = c.Close() })
	plain := openOn(t, clientAt(t, srv.URL()), nil)
	s := openOn(t, c, &Options{Replicas: 1, AckTimeout: 4 * time.Second})
	if err := c.ScriptLoad(t.Context(), s.scripts.claim.text).Err(); err != nil { // otherwise there is one WAIT more
		t.Fatal(err)
	}
	p := proposal("k")
	ended := make(chan error, 1)
	go func() {
		f, err := s.Claim(context.Background(), p)
		if f.Won {
			t.Error("won, though nobody acknowledged it")
		}
		ended <- err
	}()
	waitFor(t, "it waits", func() bool {
		return strings.Contains(plain.client.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	if err := clock.Set(-10 * time.Minute); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if _, timeout := errors.AsType[net.Error](err); !timeout {
			t.Errorf("%v, want the end of the client's patience", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for as long as the clock was set back")
	}
	if f, err := s.Claim(t.Context(), p); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("sent again: won %v, error %v", f.Won, err)
	}
	if got := get(t, plain, "k"); got.Owner != p.Owner || got.State != store.Processing {
		t.Errorf("the record is %+v", got)
	}
}
