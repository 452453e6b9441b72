package redisstore

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// documentedRights are the rights of an ACL user that doc.go names, with the default prefix.
func documentedRights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`//\tACL SETUSER app on >… ((?s:.*?))\n//\n`).FindSubmatch(text)
	if lines == nil {
		t.Fatal("doc.go names no rights")
	}
	return strings.Fields(strings.ReplaceAll(string(lines[1]), "//", ""))
}

// In a Cluster the documented rights are enough, too, and also while a slot moves.
func TestACL_DocumentedRights_ClusterWorks(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	user := []any{"acl", "setuser", "app", "on", ">secret"}
	for _, right := range documentedRights(t) {
		user = append(user, right)
	}
	for _, m := range all.Masters {
		if err := clientAt(t, m.URL()).Do(t.Context(), user...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: all.Addrs(), Username: "app", Password: "secret"})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	useAll(t, s)
	record, _ := s.name(testKey("moving").Digest())
	beginMove(t, all, s, record)
	if _, err := s.Get(t.Context(), testKey("moving")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a read of a slot that moves: %v", err)
	}
}

// Without one of the rights, calls that need it fail, and no key seems absent.
func TestACL_RightMissing_IsErrorNotAbsence(t *testing.T) {
	a, err := redistest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	srv := startSecret(t, a, "127.0.0.1", slices.DeleteFunc(documentedRights(t), func(right string) bool { return right == "+msetnx" }))
	c := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "app", Password: "pass/word"})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	if f, err := s.Claim(t.Context(), proposal("k")); err == nil || f.Won {
		t.Errorf("a claim without the right to write: won %v, error %v", f.Won, err)
	}
	other := openOn(t, c, &Options{Prefix: "others:"})
	if _, err := other.Get(t.Context(), testKey("k")); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a look at another's prefix: %v", err)
	}
}

// useAll calls each method once, and each script.
func useAll(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	complete(t, s, "settled", "x")
	r := claim(t, s, "swapped")
	f, err := s.Swap(ctx, r.Seen(), proposal("swapped"))
	if err != nil || !f.Won {
		t.Fatalf("Swap: won %v, error %v", f.Won, err)
	}
	errs, err := s.Renew(ctx, []store.Lease{f.Record.Lease()}, time.Minute)
	if err != nil || errs[0] != nil {
		t.Errorf("Renew: %v, %v", errs, err)
	}
	over := claim(t, s, "over")
	end := completion("x")
	end.Keep = 0
	if err := s.Settle(ctx, over.Lease(), end); err != nil {
		t.Errorf("Settle: %v", err)
	}
	doubt := claim(t, s, "doubt")
	step := store.Step{Name: "charge"}
	if err := s.RecordStep(ctx, doubt.Lease(), step); err != nil {
		t.Errorf("RecordStep: %v", err)
	}
	if steps, err := s.Steps(ctx, doubt.Lease()); err != nil || len(steps) != 1 {
		t.Errorf("Steps: %d, %v", len(steps), err)
	}
	if err := s.Settle(ctx, doubt.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
		t.Errorf("Settle into doubt: %v", err)
	}
	for want, filter := range map[int]store.Filter{4: {}, 1: {States: []store.State{store.Unknown}}} {
		listed := 0
		for _, err := range s.List(ctx, filter) {
			if err != nil {
				t.Errorf("List: %v", err)
			}
			listed++
		}
		if listed != want {
			t.Errorf("%d records listed, want %d", listed, want)
		}
	}
	parked := get(t, s, "doubt")
	p := proposal("doubt")
	p.State = store.Released
	if f, err := s.Swap(ctx, parked.Seen(), p); err != nil || !f.Won {
		t.Errorf("Swap out of doubt: won %v, error %v", f.Won, err)
	}
	settled := get(t, s, "settled")
	if err := s.Erase(ctx, settled.Seen()); err != nil {
		t.Errorf("Erase: %v", err)
	}
	if f, err := s.Receive(ctx, settled, nil); err != nil || !f.Won {
		t.Errorf("Receive: won %v, error %v", f.Won, err)
	}
	saga, version := store.Key{Operation: "trip##saga", Tenant: "acme", Value: "1"}, newOwner()
	if set, err := s.SetTimer(ctx, saga, store.Owner{}, version, 0); err != nil || !set {
		t.Errorf("SetTimer: set %v, error %v", set, err)
	}
	if due, _, err := s.DueTimers(ctx, saga.Operation, 0, 10); err != nil || len(due) != 1 {
		t.Errorf("DueTimers: %d, %v", len(due), err)
	}
	if err := s.DropTimer(ctx, saga, version); err != nil {
		t.Errorf("DropTimer: %v", err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
	swept := 0
	for from, first := store.Cursor(""), true; first || from != ""; first = false {
		res, err := s.Sweep(ctx, from, 100)
		if err != nil {
			t.Fatalf("Sweep: %v", err)
		}
		swept, from = swept+res.Deleted, res.Next
	}
	if swept != 1 {
		t.Errorf("%d swept, want 1", swept)
	}
}
