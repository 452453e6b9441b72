package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// The timers that are due are found by the order of their set, and the others are not
// read: the server's counts of commands are the same for few and for many of them.
func TestDueTimers_ReadsNoOtherTimers(t *testing.T) {
	t.Parallel()
	c := clientAt(t, redistest.Start(t).URL())
	s := openOn(t, c, nil)
	set := func(from, to int, wait time.Duration) {
		t.Helper()
		for i := from; i < to; i++ {
			key := store.Key{Operation: "order##saga", Value: strconv.Itoa(i)}
			if _, err := s.SetTimer(t.Context(), key, store.Owner{}, store.Owner{1}, wait); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(0, 3, 0)
	for _, others := range []int{10, 1000} {
		set(3, 3+others, time.Hour)
		if err := c.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		due, _, err := s.DueTimers(t.Context(), "order##saga", 0, 100)
		if err != nil || len(due) != 3 {
			t.Fatalf("%d timers are due, error %v; want 3", len(due), err)
		}
		stats, err := c.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		for command, want := range map[string]int{"zrangebyscore": 1, "hget": 3} {
			if !strings.Contains(stats, fmt.Sprintf("cmdstat_%s:calls=%d,", command, want)) {
				t.Errorf("beside %d other timers %s was not called %d times:\n%s", others, command, want, stats)
			}
		}
		for _, scan := range []string{"scan", "hscan", "zscan", "keys", "hgetall", "zrange"} {
			if strings.Contains(stats, "cmdstat_"+scan+":") {
				t.Errorf("it calls %s:\n%s", scan, stats)
			}
		}
	}
}

// While the slot of the timers moves, their sorted set may be on another node than the hash
// of their versions. A change is then refused: it would make a second hash, and the move
// could not go on.
func TestSetTimer_HalfOfTimersHasMoved_IsRefused(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	setTimer := func(value string) error {
		k := store.Key{Operation: "trip##saga", Tenant: "ann", Value: value}
		set, err := s.SetTimer(t.Context(), k, store.Owner{}, store.Owner{1}, 0)
		if err == nil && !set {
			t.Errorf("the timer of %s is not set", value)
		}
		return err
	}
	if err := setTimer("old"); err != nil {
		t.Fatal(err)
	}
	timers := s.timerCall(&s.scripts.setTimer, "trip##saga", 0).record
	moveKey := beginMove(t, all, s, timers)
	moveKey(timers)
	if err := setTimer("new"); !moved(err) {
		t.Errorf("between the moves of the two keys SetTimer returns the error %v, want TRYAGAIN", err)
	}
	if due, _, err := s.DueTimers(t.Context(), "trip##saga", 0, 10); !moved(err) {
		t.Errorf("between the moves of the two keys %d timers are due, error %v, want TRYAGAIN", len(due), err)
	}
	moveKey(timers + versionsName)
	if err := setTimer("new"); err != nil {
		t.Errorf("after the move SetTimer returns the error %v", err)
	}
	if due, _, err := s.DueTimers(t.Context(), "trip##saga", 0, 10); len(due) != 2 || err != nil {
		t.Errorf("after the move %d timers are due, error %v; want 2", len(due), err)
	}
}

// A timer that cannot be read does not stop the other sagas of its name, also if it is the
// first of a small page.
func TestDueTimers_OneUnreadable_OthersAreFound(t *testing.T) {
	s := openNew(t, nil)
	for i := range 3 {
		if set, err := s.SetTimer(t.Context(), testKey(itoa(i)), store.Owner{}, store.Owner{1}, time.Duration(i)*time.Second); err != nil || !set {
			t.Fatalf("set %v, error %v", set, err)
		}
	}
	k := testKey("0")
	if err := s.client.HDel(t.Context(), s.timerCall(nil, k.Operation, 0).record+versionsName, string(member(&k))).Err(); err != nil {
		t.Fatal(err)
	}
	due, _, err := s.DueTimers(t.Context(), k.Operation, time.Hour, 2)
	if len(due) != 2 || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%d timers, error %v; want 2 and ErrCorrupt", len(due), err)
	}
}
