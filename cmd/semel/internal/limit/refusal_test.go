package limit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// A flood of refusals begins once. It has ended after a minute without a refusal.
func TestRefusal_First_OncePerFlood(t *testing.T) {
	l, c := newLimiter(limit.Limits{TenantRequests: 1, TenantSpool: 10})
	refused := func(err error) bool {
		t.Helper()
		e, ok := errors.AsType[*limit.Error](err)
		if !ok {
			t.Fatalf("%v, want a limit", err)
		}
		return e.First
	}
	wantFirst := func(tenant string, want bool) {
		t.Helper()
		if _, err := begin(t, l, tenant); refused(err) != want {
			t.Errorf("%s is refused: %v, want first %v", tenant, err, want)
		}
	}
	ann, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begin(t, l, "bob"); err != nil {
		t.Fatal(err)
	}
	wantFirst("ann", true)
	for range 100 { // a flood for longer than a minute
		c.now = c.now.Add(time.Second)
		wantFirst("ann", false)
	}
	if !refused(ann.Spool(11)) {
		t.Error("another limit of the same tenant: not first")
	}
	wantFirst("bob", true)
	c.now = c.now.Add(time.Minute)
	wantFirst("ann", false)
	c.now = c.now.Add(time.Minute + time.Second)
	if !refused(ann.Spool(11)) {
		t.Error("after a minute without a refusal: not first")
	}
	wantFirst("ann", true)
	wantFirst("ann", false)

	all, _ := newLimiter(limit.Limits{Requests: 1})
	if _, err := begin(t, all, "ann"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := all.Begin(true); refused(err) != (i == 0) {
			t.Errorf("refusal %d of all: %v", i, err)
		}
	}
}

func TestTenant_RefusedVisit_Known(t *testing.T) {
	l, _ := newLimiter(limit.Limits{TenantKeys: 1})
	for range 2 {
		v, err := l.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		if name := v.Tenant(); name != "" {
			t.Errorf("the tenant is %q before it is known", name)
		}
		_ = v.Admit("ann") // the second is refused
		if name := v.Tenant(); name != "ann" {
			t.Errorf("the tenant is %q", name)
		}
		v.End()
	}
	if name := (*limit.Visit)(nil).Tenant(); name != "" {
		t.Errorf("a visit without limits: %q", name)
	}
}

// However small the limit is, each replay can be got once the others are over.
func TestHold_SingleReplay_NeverRefused(t *testing.T) {
	l, _ := newLimiter(limit.Limits{TenantSpool: 1 << 20, Spool: 2 << 20})
	ann, err := begin(t, l, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := ann.Hold(64 << 20); err != nil {
		t.Errorf("a single one: %v", err)
	}
	for tenant, want := range map[string]limit.Kind{"ann": limit.TenantSpool, "bob": limit.Spool} {
		v, err := begin(t, l, tenant)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Hold(64 << 10); err != nil {
			t.Errorf("a small one: %v", err)
		}
		wantKind(t, v.Hold(100<<10), want)
		v.End()
	}
	ann.End()
	v, err := begin(t, l, "bob")
	if err != nil {
		t.Fatal(err)
	}
	defer v.End()
	if err := v.Hold(100 << 10); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
