package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// The connection breaks while the server waits for its replica. The client then gives the error
// to all commands of the pipeline, although the script was answered.
func TestDuplicate_ConnectionBreaksInWait_RecordIsKnown(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+itoa(master.Port()))
	c := clientAt(t, master.URL())
	waitFor(t, "the replica follows", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "state=online")
	})
	plain := openOn(t, c, nil)
	held := claim(t, plain, "k")
	if err := plain.Settle(t.Context(), held.Lease(), completion("receipt")); err != nil {
		t.Fatal(err)
	}
	replica.Freeze()
	defer replica.Thaw()
	once := redis.NewClient(&redis.Options{Addr: c.Options().Addr, MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = once.Close() })
	s := openOn(t, once, &Options{Prefix: plain.opt.Prefix, Replicas: 1, AckTimeout: 30 * time.Second})
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		f, err := s.Claim(t.Context(), proposal("k"))
		if !errors.Is(err, ErrUnconfirmed) || f.Record.Key != held.Key || f.Record.State != store.Completed || f.Record.Outcome.Body != nil {
			t.Errorf("the record is %+v, error %v; want it without its outcome, and ErrUnconfirmed", f.Record, err)
		}
	}()
	waitFor(t, "the server waits for its replica", func() bool {
		return strings.Contains(c.Info(t.Context(), "clients").Val(), "blocked_clients:1")
	})
	if err := c.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
}

// A server that accepts no writes, because its replicas are away, refuses the byte that confirms
// a completed record. The record is there all the same.
func TestGuard_ServerRefusesWrites_CompletedCallDoesNotRun(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Fast...)
	s := openOn(t, clientAt(t, srv.URL()), nil)
	complete(t, s, "k", "receipt")
	waiting := openOn(t, clientAt(t, srv.URL()), &Options{Prefix: s.opt.Prefix, Replicas: 1, AckTimeout: 10 * time.Millisecond})
	configSet(t, srv.URL(), "min-replicas-to-write", "1")
	for _, st := range []*Store{s, waiting} {
		f, err := st.Claim(t.Context(), proposal("k"))
		if err != nil && (f.Won || f.Record.State != store.Completed || f.Record.Outcome.Body != nil) || err == nil && string(f.Record.Outcome.Body) != "receipt" {
			t.Errorf("a claim of a key with a result: won %v, %+v, %v", f.Won, f.Record, err)
		}
	}
	if f, err := waiting.Claim(t.Context(), proposal("new")); err == nil || f.Won || f.Record.Key != (store.Key{}) {
		t.Errorf("a claim of a new key: won %v, %+v, %v", f.Won, f.Record, err)
	}
}
