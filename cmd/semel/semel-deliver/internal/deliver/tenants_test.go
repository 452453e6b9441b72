package deliver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// The turns are what the consumer waits for.
var _ driver.Turn = (*turn)(nil)

func noNotice(string, string) {}

// came reports which turns have come, one letter each.
func came(turns ...*turn) (s string) {
	for _, u := range turns {
		if u.isReady() {
			s += "y"
		} else {
			s += "n"
		}
	}
	return s
}

func TestTenants_Limit_TurnsComeInTheirOrder(t *testing.T) {
	ts := newTenants(2, time.Minute, noNotice)
	enter := func(name string) *turn { return ts.enter(name, nil) }
	a, b, c, d := enter("ann"), enter("ann"), enter("ann"), enter("ann")
	other := enter("bob")
	if got := came(a, b, c, d, other); got != "yynny" {
		t.Fatalf("with a limit of 2 came %s", got)
	}
	if got := ts.counts(); got.waiting != 2 || got.waited != 2 || got.paused != 0 {
		t.Errorf("counts %+v", got)
	}
	e := enter("ann")
	a.Leave()
	a.Leave() // does nothing
	if got := came(c, d, e); got != "ynn" {
		t.Fatalf("after one has left: %s", got)
	}
	<-c.Ready()
	if again := ts.enter("ann", c); again != c {
		t.Error("a message whose turn has come gets another one")
	}
	d.Leave() // its message went back to the broker
	b.Leave()
	if got := came(e); got != "y" {
		t.Errorf("after two more have left: %s", got)
	}
	for _, u := range []*turn{c, e, other} {
		u.Leave()
	}
	if len(ts.all) > 0 || ts.counts().waiting != 0 {
		t.Errorf("%d tenants are remembered, of which nothing is here", len(ts.all))
	}
}

func TestTenants_Paused_OneTriesAndOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		ts := newTenants(0, time.Minute, func(tenant, reason string) { told = append(told, tenant+" "+reason) })
		a, older := ts.enter("ann", nil), ts.enter("ann", nil)
		sent := time.Now()
		a.pause(sent, 10*time.Second, "429")
		if !older.outdated() {
			t.Error("a turn from before the pause is not outdated")
		}
		a.Leave()
		older.Leave()
		b, c, bob := ts.enter("ann", nil), ts.enter("ann", nil), ts.enter("bob", nil)
		time.Sleep(10*time.Second - time.Nanosecond)
		if got := came(b, c, bob); got != "nny" || ts.counts().paused != 1 || ts.counts().pausedQueued != 2 {
			t.Fatalf("in the pause came %s; %+v", got, ts.counts())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := came(b, c); got != "yn" || b.outdated() {
			t.Fatalf("after the pause came %s", got)
		}
		b.pause(time.Now(), time.Second, "429 again")
		b.Leave()
		time.Sleep(time.Second)
		synctest.Wait()
		d := ts.enter("ann", nil)
		if got := came(c, d); got != "yn" {
			t.Fatalf("after the second pause came %s", got)
		}
		c.answered(time.Now())
		c.Leave()
		if got := came(d); got != "y" {
			t.Error("the answer does not end the pause")
		}
		d.Leave()
		bob.Leave()
		if want := []string{"ann 429"}; len(told) != 1 || told[0] != want[0] || len(ts.all) > 0 {
			t.Errorf("told %q, want %q; %d tenants are remembered", told, want, len(ts.all))
		}
	})
}

// A pause without a time grows, although the only message of the tenant is away meanwhile.
// A tenant from which nothing comes is forgotten.
func TestTenants_PauseOfIdleTenant_IsRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := newTenants(1, time.Minute, noNotice)
		for range 3 { // pauses of 100, 200 and 400 ms
			u := ts.enter("ann", nil)
			if !u.isReady() {
				t.Fatal("the pause is not over")
			}
			u.pause(time.Now(), 0, "429")
			u.Leave()
			time.Sleep(time.Second)
		}
		u := ts.enter("ann", nil)
		u.pause(time.Now(), 0, "429")
		u.Leave()
		time.Sleep(799 * time.Millisecond)
		next := ts.enter("ann", nil)
		if next.isReady() {
			t.Error("the fourth pause is shorter than 800 ms")
		}
		next.Leave()
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		if len(ts.all) > 0 {
			t.Error("the tenant is not forgotten")
		}
	})
}
