package redistest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // it would report each connection to a killed server
	os.Exit(redistest.Main(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestServer_KilledAndStarted_HasItsData(t *testing.T) {
	s := redistest.Start(t, redistest.Durable...)
	if err := client(t, s.Addr()).Set(t.Context(), "kept", 7, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("Start of a server that runs succeeded")
	}
	for _, end := range []func(){s.Kill, s.Stop} {
		end()
		if err := client(t, s.Addr()).Ping(t.Context()).Err(); err == nil {
			t.Error("the server answers after its end")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if n, err := client(t, s.Addr()).Get(t.Context(), "kept").Int(); err != nil || n != 7 {
			t.Errorf("after the restart the value is %d, error %v; want 7", n, err)
		}
	}
}

func TestServer_Frozen_DoesNotAnswer(t *testing.T) {
	s := redistest.Start(t, redistest.Fast...)
	c := client(t, s.Addr())
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Freeze()
	answer := make(chan error, 1)
	slow := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = slow.Close() })
	go func() { answer <- slow.Ping(context.Background()).Err() }()
	select {
	case err := <-answer:
		t.Errorf("a frozen server answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Thaw()
	if err := <-answer; err != nil {
		t.Errorf("after Thaw: %v", err)
	}
}

func TestURL_CalledTwice_SameServer(t *testing.T) {
	url := redistest.URL(t)
	if redistest.URL(t) != url {
		t.Error("URL returned two servers")
	}
	if a, b := redistest.Database(t), redistest.Database(t); a == b && os.Getenv("SEMEL_TEST_REDIS_URL") == "" {
		t.Errorf("two tests in a row have the database %s", a)
	}
	t.Setenv("SEMEL_TEST_REDIS_URL", "redis://elsewhere")
	if got := redistest.URL(t); !strings.Contains(got, "elsewhere") {
		t.Errorf("SEMEL_TEST_REDIS_URL is set, but URL is %s", got)
	}
}

func TestFailover_MasterKilled_ReplicaIsPromoted(t *testing.T) {
	f := redistest.StartFailover(t, redistest.Fast...)
	if err := client(t, f.Master.Addr()).Set(t.Context(), "kept", 7, 0).Err(); err != nil {
		t.Fatal(err)
	}
	replica := client(t, f.Replica.Addr())
	for replica.Get(t.Context(), "kept").Err() != nil { // until the key is replicated
		<-time.After(time.Millisecond)
	}
	f.Master.Kill()
	if err := f.Promoted(); err != nil {
		t.Fatal(err)
	}
	if n, err := replica.Incr(t.Context(), "kept").Result(); err != nil || n != 8 {
		t.Errorf("after the promotion the value is %d, error %v; want 8", n, err)
	}
}

func TestClock_Set_ServerTimeMoves(t *testing.T) {
	s, clock := redistest.StartWithClock(t, redistest.Fast...)
	c := client(t, s.Addr())
	if err := c.Set(t.Context(), "k", 1, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{-10 * time.Minute, 0, 30*time.Second + 1500*time.Microsecond} {
		if err := clock.Set(d); err != nil {
			t.Error(err)
		}
		if n, err := c.Get(t.Context(), "k").Int(); err != nil || n != 1 {
			t.Errorf("clock set to %v: the value is %d, error %v; want 1", d, n, err)
		}
	}
	if err := clock.Set(10 * time.Minute); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) { // the server uses that clock
		t.Errorf("get of an expired key: error %v, want redis.Nil", err)
	}
}
