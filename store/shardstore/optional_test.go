package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

// bare can do what a store must, and no more.
type bare struct{ store.Store }

type waits struct {
	store.Store
	err error
}

func (w waits) Wait(context.Context, store.Seen) error { return w.err }

type migrates struct {
	store.Store
	err   error
	times *atomic.Int64
}

func (m migrates) Migrate(context.Context) error { m.times.Add(1); return m.err }

type checks struct {
	store.Store
	err error
}

func (c checks) Check(context.Context) error { return c.err }

type confirms struct {
	store.Store
	err error
}

func (c confirms) Confirm(context.Context) error { return c.err }

func TestConfirm_ShardDown_IsItsError(t *testing.T) {
	errDown := errors.New("down")
	for name, c := range map[string]struct {
		b    store.Store
		want error
	}{"both confirm": {confirms{memstore.New(nil), nil}, nil}, "one is down": {confirms{memstore.New(nil), errDown}, errDown}, "one needs no confirmation": {memstore.New(nil), nil}} {
		s := newStore(t, shardstore.Shard{Name: "a", Store: confirms{memstore.New(nil), nil}}, shardstore.Shard{Name: "b", Store: c.b})
		st, ok := store.As[store.Confirmer](s)
		if !ok {
			t.Fatalf("%s: the store is no store.Confirmer", name)
		}
		if err := st.Confirm(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	plain := newStore(t, shardstore.Shard{Name: "a", Store: memstore.New(nil)})
	if _, ok := store.As[store.Confirmer](plain); ok {
		t.Error("no shard is a store.Confirmer, and the store is")
	}
}

func TestUnwrap_OptionalInterfaces_AreThoseOfShards(t *testing.T) {
	mem := func() store.Store { return memstore.New(nil) } // can be searched
	plain := func() store.Store { return bare{memstore.New(nil)} }
	var n atomic.Int64
	for name, c := range map[string]struct {
		a, b                       store.Store
		list, wait, migrate, check bool
	}{
		"nothing":                     {a: plain(), b: plain()},
		"all can be searched":         {a: mem(), b: mem(), list: true, check: true},
		"one cannot be searched":      {a: mem(), b: plain()},
		"one can wait":                {a: waits{plain(), nil}, b: plain(), wait: true},
		"one has a schema":            {a: plain(), b: migrates{plain(), nil, &n}, migrate: true},
		"one knows its settings":      {a: checks{plain(), nil}, b: plain(), check: true},
		"each something":              {a: waits{mem(), nil}, b: checks{mem(), nil}, wait: true, check: true}, // they hide the memory store
		"all of them through a shard": {a: newStore(t, shardstore.Shard{Name: "x", Store: mem()}), b: mem(), list: true, check: true},
	} {
		s := newStore(t, shardstore.Shard{Name: "a", Store: c.a}, shardstore.Shard{Name: "b", Store: c.b})
		_, list := store.As[store.Lister](s)
		_, wait := store.As[store.Waiter](s)
		_, migrate := store.As[store.Migrator](s)
		_, check := store.As[store.Checker](s)
		if _, erase := store.As[store.Eraser](s); erase != c.list { // the memory store can do both
			t.Errorf("%s: erase %v, want %v", name, erase, c.list)
		}
		if list != c.list || wait != c.wait || migrate != c.migrate || check != c.check {
			t.Errorf("%s: list %v, wait %v, migrate %v, check %v", name, list, wait, migrate, check)
		}
		if _, ok := store.As[*memstore.Store](s); ok {
			t.Errorf("%s: a shard is found behind the store", name)
		}
	}
}

func TestList_ShardDown_YieldsOthersThenError(t *testing.T) {
	a, b, c := memstore.New(nil), failing{memstore.New(nil)}, memstore.New(nil)
	s := newStore(t, shardstore.Shard{Name: "a", Store: a}, shardstore.Shard{Name: "b", Store: b}, shardstore.Shard{Name: "c", Store: c})
	up := 0
	for i := range 60 {
		k := key(fmt.Sprint(i))
		claim(t, s, k)
		if s.On(k) != "b" {
			up++
		}
	}
	l, _ := store.As[store.Lister](s)
	for limit, want := range map[int]int{0: up, 5: 5, 60: up} {
		got, errs := 0, []error(nil)
		for _, err := range l.List(t.Context(), store.Filter{Limit: limit}) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if len(errs) > 0 {
				t.Error("a record comes after an error")
			}
			got++
		}
		if got != want || len(errs) > 1 || limit != 5 && (len(errs) != 1 || !errors.Is(errs[0], errDown) || !strings.Contains(errs[0].Error(), `"b"`)) {
			t.Errorf("limit %d: %d records, errors %v; want %d and that of b", limit, got, errs, want)
		}
	}
}

// A shard that hangs uses half of the time, and the records of the others are listed.
func TestList_ShardHangs_YieldsOthersThenError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, onB := newFrozen(t)
		claim(t, s, store.Key{Operation: "pay", Tenant: "ann", Value: onB("pay")})
		a.hangs.Store(true)
		l, _ := store.As[store.Lister](s)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got, failed := 0, error(nil)
		for _, err := range l.List(ctx, store.Filter{}) {
			if failed = err; err == nil {
				got++
			}
		}
		if got != 1 || !errors.Is(failed, context.DeadlineExceeded) || !strings.Contains(failed.Error(), `"a"`) || ctx.Err() != nil {
			t.Errorf("%d records, and at last %v; want 1 and the error of a, before the caller's time is over", got, failed)
		}
	})
}

var errDown = errors.New("down")

type failing struct{ *memstore.Store }

func (failing) List(context.Context, store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) { yield(store.Found{}, errDown) }
}

// garbled begins its list with a record that cannot be read.
type garbled struct{ *memstore.Store }

func (g garbled) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if !yield(store.Found{}, fmt.Errorf("a newer format: %w", store.ErrCorrupt)) {
			return
		}
		for fd, err := range g.Store.List(ctx, f) {
			if !yield(fd, err) {
				return
			}
		}
	}
}

func TestList_UnreadableRecord_Continues(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: garbled{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	for i := range 60 {
		claim(t, s, key(fmt.Sprint(i)))
	}
	l, _ := store.As[store.Lister](s)
	got, errs := 0, []error(nil)
	for _, err := range l.List(t.Context(), store.Filter{}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got++
	}
	if got != 60 || len(errs) != 1 || !errors.Is(errs[0], store.ErrCorrupt) || !strings.Contains(errs[0].Error(), `"a"`) {
		t.Errorf("%d of 60 records, errors %v", got, errs)
	}
	for _, err := range l.List(t.Context(), store.Filter{}) { // a caller that stops gets no more
		if err == nil {
			t.Error("the error is not where it was met")
		}
		break
	}
}

func TestWait_Key_AsksItsShard(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: waits{memstore.New(nil), errDown}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	w, ok := store.As[store.Waiter](s)
	if !ok {
		t.Fatal("there is no Waiter")
	}
	for i := range 20 {
		k := key(fmt.Sprint(i))
		err := w.Wait(t.Context(), store.Seen{Key: k})
		if a := s.On(k) == "a"; a != errors.Is(err, errDown) || a == errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("on %s: %v", s.On(k), err)
		}
	}
}

func TestMigrateAndCheck_EachShard_IsAsked(t *testing.T) {
	var n atomic.Int64
	s := newStore(t,
		shardstore.Shard{Name: "a", Store: migrates{memstore.New(nil), errDown, &n}},
		shardstore.Shard{Name: "b", Store: migrates{memstore.New(nil), nil, &n}},
		shardstore.Shard{Name: "c", Store: checks{memstore.New(nil), errDown}},
		shardstore.Shard{Name: "d", Store: checks{memstore.New(nil), errDown}})
	m, _ := store.As[store.Migrator](s)
	if err := m.Migrate(t.Context()); n.Load() != 2 || !errors.Is(err, errDown) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%d were migrated, %v", n.Load(), err)
	}
	c, _ := store.As[store.Checker](s)
	if err := c.Check(t.Context()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), `"c"`) || !strings.Contains(err.Error(), `"d"`) {
		t.Errorf("Check: %v", err)
	}
}

func TestCheck_ShardHangs_OthersAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &frozen{Store: memstore.New(nil)}
		a.hangs.Store(true)
		s := newStore(t, shardstore.Shard{Name: "a", Store: a}, shardstore.Shard{Name: "b", Store: checks{memstore.New(nil), errDown}})
		c, _ := store.As[store.Checker](s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Check(ctx); !errors.Is(err, errDown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Check: %v; want the errors of both shards", err)
		}
	})
}

// Check notices a changed set of shards while the moved keys' records exist.
func TestCheck_RecordOnWrongShard_IsNamed(t *testing.T) {
	c := newClock()
	a, b := memstore.New(&memstore.Options{Now: c.Now}), memstore.New(&memstore.Options{Now: c.Now})
	old := newStore(t, shardstore.Shard{Name: "a", Store: a})
	for i := range 50 {
		r := claim(t, old, key(fmt.Sprint(i)))
		if err := old.Settle(t.Context(), r.Lease(), settlement()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(s *shardstore.Store) error {
		ch, ok := store.As[store.Checker](s)
		if !ok {
			t.Fatal("there is no Checker")
		}
		return ch.Check(t.Context())
	}
	if err := check(old); err != nil {
		t.Errorf("the old set: %v", err)
	}
	now := newStore(t, shardstore.Shard{Name: "a", Store: a}, shardstore.Shard{Name: "b", Store: b})
	if err := check(now); err == nil || !strings.Contains(err.Error(), `"a"`) || strings.Contains(err.Error(), `"b"`) {
		t.Errorf("the new set: %v", err)
	}
	// A record that cannot be read does not hide the others.
	if err := check(newStore(t, shardstore.Shard{Name: "a", Store: oneUnreadable{a}}, shardstore.Shard{Name: "b", Store: b})); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "keys of other shards") {
		t.Errorf("the new set, with an unreadable record: %v", err)
	}
	c.Advance(2 * time.Hour) // they have expired
	if err := check(now); err != nil {
		t.Errorf("after the retention: %v", err)
	}
}

// oneUnreadable is a store whose list begins with a record that cannot be read.
type oneUnreadable struct{ *memstore.Store }

func (u oneUnreadable) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if !yield(store.Found{}, store.ErrCorrupt) {
			return
		}
		u.Store.List(ctx, f)(yield)
	}
}
