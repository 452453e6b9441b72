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

func knows(t *testing.T, c *redis.Client, command string) bool {
	t.Helper()
	info, err := c.Do(context.Background(), "command", "info", command).Slice()
	if err != nil {
		t.Fatal(err)
	}
	return len(info) == 1 && info[0] != nil
}

// needWaitaof skips the test on a server that is too old.
func needWaitaof(t *testing.T, c *redis.Client) {
	t.Helper()
	if !knows(t, c, "waitaof") {
		t.Skip("SKIPPED, NOT TESTED: this server has no WAITAOF; see make test-redis8")
	}
}

// A server that has no WAITAOF is refused, and one that has it waits for its
// disk.
func TestFsync_ServerWithoutWaitaof_IsRefused(t *testing.T) {
	t.Parallel()
	c := clientAt(t, redistest.Start(t, redistest.Durable...).URL())
	s := openOn(t, c, &Options{Fsync: true})
	f, err := s.Claim(t.Context(), proposal("k"))
	if knows(t, c, "waitaof") {
		if err != nil || !f.Won {
			t.Errorf("won %v, error %v", f.Won, err)
		}
		if err := s.Settle(t.Context(), f.Record.Lease(), completion("x")); err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, ErrUnsafe) || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if _, err := openOn(t, c, nil).Get(t.Context(), testKey("k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the claim is still there: %v", err)
	}
}

// If the server never syncs or has no log, a claim is refused, and a settlement
// stays and is reported as unconfirmed.
func TestFsync_NotOnDisk_ClaimRefusedSettlementUnconfirmed(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"it never syncs": {"--appendonly", "yes", "--appendfsync", "no"},
		"no log":         {"--appendonly", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientAt(t, redistest.Start(t, args...).URL())
			needWaitaof(t, c)
			refusesAndReports(t, openOn(t, c, &Options{Fsync: true, AckTimeout: 20 * time.Millisecond}), openOn(t, c, nil))
		})
	}
}

// refusesAndReports checks a store that gets no acknowledgement; the other one
// wants none.
func refusesAndReports(t *testing.T, s, other *Store) {
	t.Helper()
	p := proposal("new")
	f, err := s.Claim(t.Context(), p)
	if !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("a claim: won %v, error %v", f.Won, err)
	}
	if got := get(t, other, "new"); got.Owner != p.Owner || got.State != store.Processing {
		t.Errorf("the refused claim left %+v", got)
	}
	old := claim(t, other, "held")
	p = proposal("held")
	f, err = s.Swap(t.Context(), old.Seen(), p)
	if now := get(t, other, "held"); !errors.Is(err, ErrNotAcknowledged) || f.Won || now.Owner != p.Owner || now.Fence <= old.Fence {
		t.Errorf("a swap: won %v, error %v; fence %d after %d", f.Won, err, now.Fence, old.Fence)
	}
	old = get(t, other, "held")
	if errs, err := s.Renew(t.Context(), []store.Lease{old.Lease()}, time.Minute); err != nil || !errors.Is(errs[0], ErrNotAcknowledged) {
		t.Errorf("a renewal: %v, %v", errs, err)
	}
	for range 2 {
		if err := s.Settle(t.Context(), old.Lease(), completion("x")); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("a settlement: %v", err)
		}
		if got := get(t, other, "held"); got.State != store.Completed || string(got.Outcome.Body) != "x" {
			t.Errorf("it is %v with %q", got.State, got.Outcome.Body)
		}
	}
}

// The disk of a replica counts only if it has a log.
func TestFsync_ReplicaWithoutLog_DoesNotAcknowledge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		acked bool
	}{"with a log": {redistest.Durable, true}, "without": {redistest.Fast, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t, append([]string{"--repl-diskless-sync-delay", "0"}, redistest.Durable...)...)
			rc := clientAt(t, master.URL())
			needWaitaof(t, rc)
			redistest.Start(t, append([]string{"--replicaof", "127.0.0.1 " + itoa(master.Port())}, c.args...)...)
			waitFor(t, "the replica follows", func() bool {
				return strings.Contains(rc.Info(t.Context(), "replication").Val(), "state=online")
			})
			if !c.acked {
				refusesAndReports(t, openOn(t, rc, &Options{Fsync: true, Replicas: 1, AckTimeout: 50 * time.Millisecond}), openOn(t, rc, nil))
				return
			}
			patient := redis.NewClient(&redis.Options{Addr: master.Addr(), ReadTimeout: time.Minute})
			t.Cleanup(func() { _ = patient.Close() })
			s := openOn(t, patient, &Options{Fsync: true, Replicas: 1, AckTimeout: 50 * time.Second})
			r := complete(t, s, "k", "x")
			if err := s.Settle(t.Context(), r.Lease(), completion("x")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A settlement that is not on the disk in time is kept, and confirmed when it is
// sent again with more patience.
func TestFsync_SettlementSentAgain_IsConfirmed(t *testing.T) {
	t.Parallel()
	c := clientAt(t, redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no").URL())
	needWaitaof(t, c)
	r := claim(t, openOn(t, c, nil), "k")
	if err := openOn(t, c, &Options{Fsync: true, AckTimeout: 5 * time.Millisecond}).Settle(t.Context(), r.Lease(), completion("x")); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("while the server syncs nothing: %v", err)
	}
	if err := c.ConfigSet(t.Context(), "appendfsync", "everysec").Err(); err != nil {
		t.Fatal(err)
	}
	patient := redis.NewClient(&redis.Options{Addr: c.Options().Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = patient.Close() })
	if err := openOn(t, patient, &Options{Fsync: true, AckTimeout: 50 * time.Second}).Settle(t.Context(), r.Lease(), completion("x")); err != nil {
		t.Errorf("when it syncs: %v", err)
	}
}
