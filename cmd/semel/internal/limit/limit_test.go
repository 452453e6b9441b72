package limit_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// clock is a time that a test sets.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func newLimiter(l limit.Limits) (*limit.Limiter, *clock) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	return limit.New(l, c.read), c
}

func begin(t *testing.T, l *limit.Limiter, tenant string) (*limit.Visit, error) {
	t.Helper()
	v, err := l.Begin(true)
	if err != nil {
		return nil, err
	}
	if err := v.Admit(tenant); err != nil {
		v.End()
		return nil, err
	}
	return v, nil
}

func wantKind(t *testing.T, err error, want limit.Kind) time.Duration {
	t.Helper()
	e, ok := errors.AsType[*limit.Error](err)
	if !ok || e.Kind != want || e.After < time.Second {
		t.Fatalf("%v, want the limit %v", err, want)
	}
	return e.After
}

func TestVisit_TenantHasAllItsPlaces_OthersAreServed(t *testing.T) {
	l, _ := newLimiter(limit.Limits{TenantRequests: 2, Requests: 10})
	first, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begin(t, l, "ann"); err != nil {
		t.Fatal(err)
	}
	_, err = begin(t, l, "ann")
	wantKind(t, err, limit.TenantRequests)
	if _, err := begin(t, l, "bob"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	first.End()
	if _, err := begin(t, l, "ann"); err != nil {
		t.Errorf("after a request has ended: %v", err)
	}
	if n := l.Refused(limit.TenantRequests); n != 1 {
		t.Errorf("counted %d refusals", n)
	}
}

func TestBegin_AllPlacesTaken_Refused(t *testing.T) {
	l, _ := newLimiter(limit.Limits{Requests: 1})
	v, err := l.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Begin(true)
	wantKind(t, err, limit.Requests)
	if _, err := l.Begin(false); err != nil {
		t.Errorf("a request without a key has places of its own: %v", err)
	}
	v.End()
	if _, err := l.Begin(true); err != nil {
		t.Errorf("after a request has ended: %v", err)
	}
}

func TestAdmit_MinuteUsedUp_RefusedUntilThereIsRoom(t *testing.T) {
	l, c := newLimiter(limit.Limits{TenantKeys: 6, Keys: 1000})
	use := func() error {
		v, err := begin(t, l, "ann")
		if err == nil {
			v.End()
		}
		return err
	}
	for range 6 {
		if err := use(); err != nil {
			t.Fatal(err)
		}
	}
	after := wantKind(t, use(), limit.TenantKeys)
	if after != 10*time.Second {
		t.Errorf("the wait is %v", after)
	}
	c.now = c.now.Add(after)
	if err := use(); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	all, _ := newLimiter(limit.Limits{Keys: 1})
	if _, err := begin(t, all, "ann"); err != nil {
		t.Fatal(err)
	}
	_, err := begin(t, all, "bob")
	wantKind(t, err, limit.Keys)
}

// docs/sidecar.md has these figures.
func TestAdmit_IdleTenant_AllAtOnceThenRefilledEvenly(t *testing.T) {
	l, c := newLimiter(limit.Limits{TenantKeys: 20})
	admitted := 0
	for second := range 61 {
		for range 100 {
			if v, err := begin(t, l, "ann"); err == nil {
				admitted++
				v.End()
			}
		}
		if want := 20 + second/3; admitted != want {
			t.Errorf("%d admitted in %d s, want %d", admitted, second, want)
		}
		c.now = c.now.Add(time.Second)
	}
}

func TestSpool_BytesHeld_GivenBackAtTheEnd(t *testing.T) {
	l, _ := newLimiter(limit.Limits{Spool: 100, TenantSpool: 60})
	ann, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := ann.Spool(60); err != nil {
		t.Fatal(err)
	}
	again, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, again.Spool(1), limit.TenantSpool)
	bob, err := begin(t, l, "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := bob.Spool(40); err != nil {
		t.Fatal(err)
	}
	wantKind(t, bob.Spool(1), limit.Spool)
	bob.End()
	ann.End()
	again.End()
	if n := l.Spooled(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// A request that waits for its refusal frees its place only if its tenant has not
// admitted it: the body of an admitted one may be in a file.
func TestEndUnadmitted_AdmittedRequest_KeepsItsBytes(t *testing.T) {
	l, _ := newLimiter(limit.Limits{Requests: 2, TenantRequests: 1})
	admitted, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := admitted.Spool(100); err != nil {
		t.Fatal(err)
	}
	refused, err := l.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, refused.Admit("ann"), limit.TenantRequests)
	_, err = l.Begin(true)
	wantKind(t, err, limit.Requests)
	for range 2 {
		admitted.EndUnadmitted()
		refused.EndUnadmitted()
	}
	if n := l.Spooled(); n != 100 {
		t.Errorf("%d bytes are held, want 100", n)
	}
	other, err := begin(t, l, "bob")
	if err != nil {
		t.Fatalf("the refused request holds its place: %v", err)
	}
	_, err = l.Begin(true)
	wantKind(t, err, limit.Requests)
	for _, v := range []*limit.Visit{admitted, refused, other} {
		v.End()
	}
	if n := l.Spooled(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

func TestKeep_MoreBytesThanAllowed_NextRequestWaits(t *testing.T) {
	l, c := newLimiter(limit.Limits{TenantBytes: 600})
	v, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	v.Keep(1300)
	v.End()
	_, err = begin(t, l, "ann")
	if after := wantKind(t, err, limit.TenantBytes); after != 122500*time.Millisecond { // what is over the burst of 75, at 10 a second
		t.Errorf("the wait is %v", after)
	}
	if _, err := begin(t, l, "bob"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	c.now = c.now.Add(123 * time.Second)
	if _, err := begin(t, l, "ann"); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestTenants_ManyNames_Bounded(t *testing.T) {
	l, c := newLimiter(limit.Limits{TenantRequests: 1, TenantKeys: 1})
	for i := range 100_000 {
		v, err := begin(t, l, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		v.End()
	}
	if n := l.Tenants(); n > 1<<16 {
		t.Errorf("%d accounts", n)
	}
	c.now = c.now.Add(2 * time.Minute)
	for i := range 1 << 14 {
		v, err := begin(t, l, fmt.Sprint("later", i))
		if err != nil {
			t.Fatal(err)
		}
		v.End()
		c.now = c.now.Add(time.Second)
	}
	if n := l.Tenants(); n > 4096 {
		t.Errorf("%d accounts are kept, though few are in use", n)
	}
}

// Nobody would give back the bytes that a body brings after its visit has ended.
func TestSpool_VisitEnded_CountsNothing(t *testing.T) {
	l, _ := newLimiter(limit.Limits{Requests: 1, TenantRequests: 1, TenantSpool: 10, Spool: 10})
	for name, end := range map[string]func(*limit.Visit){"End": (*limit.Visit).End, "EndUnadmitted": (*limit.Visit).EndUnadmitted} {
		v, err := l.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		end(v)
		if err := v.Spool(11); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
		v.End()
		if n := l.Spooled(); n != 0 {
			t.Errorf("after %s: %d bytes are held for ever", name, n)
		}
	}
}
