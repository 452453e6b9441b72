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

func TestOptions_Invalid_AreNamed(t *testing.T) {
	var o *Options
	d, err := o.withDefaults()
	if err != nil || d.Prefix != "semel:" || d.Linger != time.Hour || d.AckTimeout != 500*time.Millisecond || d.MaxBatch != 256 {
		t.Errorf("the defaults are %+v, %v", d, err)
	}
	for says, o := range map[string]Options{
		"Prefix has 101":        {Prefix: strings.Repeat("x", 101)},
		"must not hold a brace": {Prefix: "a{b"},
		"Linger is 1ms":         {Linger: time.Millisecond},
		"Linger is -1s":         {Linger: -time.Second},
		"Replicas is -1":        {Replicas: -1},
		"AckTimeout is 1ns":     {AckTimeout: 1},
		"Flushers is -1":        {Flushers: -1},
		"MaxBatch is 2001":      {MaxBatch: 2001},
	} {
		if _, err := o.withDefaults(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}

func TestNew_Ring_IsRefused(t *testing.T) {
	if _, err := New(nil, nil); err == nil {
		t.Error("nil was taken")
	}
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	if _, err := New(ring, nil); err == nil || !strings.Contains(err.Error(), "Ring") {
		t.Errorf("a ring: %v", err)
	}
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nobody is there
	defer c.Close()
	if _, err := New(c, nil); err != nil {
		t.Errorf("New does I/O: %v", err)
	}
	if _, err := New(c, &Options{Prefix: "{"}); err == nil {
		t.Error("bad options were taken")
	}
}

func TestOpen_URL_OpensOrNamesFault(t *testing.T) {
	s, err := Open(t.Context(), redistest.Database(t), &Options{Prefix: newPrefix()})
	if err != nil {
		t.Fatal(err)
	}
	complete(t, s, "k", "x")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"Settle": s.Settle(t.Context(), store.Lease{}, completion("x")), "Check": s.Check(t.Context()),
		"Claim": second(s.Claim(t.Context(), proposal("k"))), "Get": second(s.Get(t.Context(), testKey("k"))),
		"Sweep": second(s.Sweep(t.Context(), "", 1)), "Renew": second(s.Renew(t.Context(), nil, time.Second)),
		"Swap": second(s.Swap(t.Context(), store.Seen{Key: testKey("k")}, proposal("k"))),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	for url, says := range map[string]string{
		"localhost:6379":                 "no scheme",
		"http://localhost":               "scheme",
		"redis+ring://localhost":         `"redis+ring"`,
		"redis://localhost/x":            "database",
		"redis://u:hunter2@local host":   "",
		"redis+cluster://localhost?no=1": "no",
		"redis://127.0.0.1:1":            "refused",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s, err := Open(ctx, url, nil)
		cancel()
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v; want %q", url, s, err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestOpen_SentinelAndClusterURL_Opens(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	all := redistest.StartCluster(t, false)
	for _, url := range []string{f.URL(), f.URL() + "&replica_only=true", all.URL()} {
		s, err := Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		complete(t, s, url, "x")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClaim_ParkWithoutAllowPark_IsRefused(t *testing.T) {
	s := openNew(t, nil)
	p := proposal("k")
	p.Policy = store.Park
	if f, err := s.Claim(t.Context(), p); err == nil || f.Won || !strings.Contains(err.Error(), "AllowPark") {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	r := claim(t, s, "k")
	if f, err := s.Swap(t.Context(), r.Seen(), p); err == nil || f.Won {
		t.Errorf("a swap: won %v, error %v", f.Won, err)
	}
	p.State = store.Unknown // to park is no claim
	if f, err := s.Swap(t.Context(), r.Seen(), p); err != nil || !f.Won {
		t.Errorf("parking: won %v, error %v", f.Won, err)
	}
	allowed := openOn(t, s.client, &Options{Prefix: newPrefix(), AllowPark: true})
	p.State = store.Processing
	if f, err := allowed.Claim(t.Context(), p); err != nil || !f.Won {
		t.Errorf("allowed: won %v, error %v", f.Won, err)
	}
}

// Whatever a URL says, records are read where they are written.
func TestOpen_URLAsksForReplicas_ReadsFromMasters(t *testing.T) {
	c, err := newClient("redis+cluster://127.0.0.1:1?read_only=true&route_by_latency=true&route_randomly=true")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if o := c.(*redis.ClusterClient).Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
		t.Errorf("%+v", o)
	}
}

func TestStore_ClientClosed_ReturnsErrClosed(t *testing.T) {
	c := clientAt(t, redistest.Database(t))
	s := openOn(t, c, nil)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), testKey("k")); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
