package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

// startRedis is a server, and a client of it, with a key that the demo must
// leave alone.
func startRedis(t *testing.T) (url string, c *redis.Client) {
	t.Helper()
	srv := redistest.Start(t, redistest.Fast...)
	c = redis.NewClient(&redis.Options{Addr: srv.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Set(t.Context(), "semel:mine", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return srv.URL(), c
}

// onlyMine checks that no key of a demo is left.
func onlyMine(t *testing.T, c *redis.Client) {
	t.Helper()
	names, err := c.Keys(context.Background(), "*").Result()
	if err != nil || len(names) != 1 || names[0] != "semel:mine" {
		t.Errorf("left are %q, %v", names, err)
	}
}

func TestCampaign_DemoOnRedis_PromisesHold(t *testing.T) {
	url, c := startRedis(t)
	r, code, told := result(t, "--store="+url)
	if code != 0 || len(r.Broken) != 0 {
		t.Fatalf("exit code %d, broken %q; told: %s", code, r.Broken, told)
	}
	s := r.With
	if s.DoubleCharges != 0 || s.Lost != 0 || s.Stuck != 0 || s.Charges != 200 || s.Kills != 16 || s.Replays == 0 || s.Reconciled == 0 {
		t.Errorf("with Semel: %+v", s)
	}
	onlyMine(t, c)
}

func TestCampaign_DemoOnRedisInterrupted_RemovesItsKeys(t *testing.T) {
	url, c := startRedis(t)
	dir := t.TempDir()
	cmd := command(t, dir, "--orders=100", "--kills=0", "--store="+url)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n, end := int64(0), time.Now().Add(time.Minute); n < 2; <-tick.C {
		var err error
		if n, err = c.DBSize(t.Context()).Result(); err != nil || time.Now().After(end) {
			t.Fatalf("the demo has kept nothing within a minute; %v", err)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	leftNothing(t, dir)
	onlyMine(t, c)
}
