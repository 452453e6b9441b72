package storetest

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// recorder is a test that may fail without failing the one it stands in for.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.text += fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failure is what fn's test failed with.
func failure(t *testing.T, fn func(tb testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(r)
	}()
	<-done
	return r.text
}

// named finds a mutant.
func named(t *testing.T, name string) mutant {
	t.Helper()
	all := allMutants()
	i := slices.IndexFunc(all, func(mu mutant) bool { return mu.name == name })
	if i < 0 {
		t.Fatalf("no mutant is called %q", name)
	}
	return all[i]
}

func TestHistory_Mismatch_EndsTheTest(t *testing.T) {
	h := mutantHarness(named(t, "a claim takes an expired record"))
	for seed := range uint64(100) {
		text := failure(t, func(tb testing.TB) { History(tb, h, seed, historySteps) })
		if text == "" {
			continue
		}
		if again := failure(t, func(tb testing.TB) { History(tb, h, seed, historySteps) }); again != text {
			t.Errorf("the same seed gives another report:\n%s\n%s", text, again)
		}
		for _, want := range []string{fmt.Sprintf("storetest.History(t, harness, %#x, %d)", seed, historySteps), "fewer steps", "won true, want false"} {
			if !strings.Contains(text, want) {
				t.Errorf("the report does not say %q:\n%s", want, text)
			}
		}
		if n := strings.Count(text, "\n"); n > 12 {
			t.Errorf("the shortest way to the bug is given in %d lines:\n%s", n, text)
		}
		return
	}
	t.Error("a hundred histories found nothing")
}

func TestHistory_CorrectStore_Passes(t *testing.T) {
	h := mutantHarness(mutant{make: func(m *model) *hooks { return &hooks{model: m} }})
	for seed := range uint64(20) {
		if text := failure(t, func(tb testing.TB) { History(tb, h, seed, 200) }); text != "" {
			t.Fatal(text)
		}
	}
}

func TestHistory_Shortened_StillFails(t *testing.T) {
	mu := named(t, "settles without comparing the fence")
	fresh := func() *arena { return mutantArena(mu) }
	for seed := range uint64(200) {
		list := script(seed, historySteps)
		m := fresh().play(t.Context(), "long", list)
		if m == nil {
			continue
		}
		short := shorten(t.Context(), list[:m.at+1], fresh)
		if fresh().play(t.Context(), "short", short) == nil {
			t.Fatalf("history %d: shortened to %d steps it goes right", seed, len(short))
		}
		for i := range short {
			fewer := slices.Delete(slices.Clone(short), i, i+1)
			if fresh().play(t.Context(), "fewer", fewer) != nil && i < len(short)-1 {
				t.Errorf("history %d: step %d of %d can be left out too", seed, i+1, len(short))
			}
		}
		return
	}
	t.Error("no history goes wrong")
}

func TestScript_SameSeed_SameSteps(t *testing.T) {
	a, b := script(7, 500), script(7, 500)
	if !slices.Equal(a, b) {
		t.Error("one seed made two scripts")
	}
	if slices.Equal(a, script(8, 500)) {
		t.Error("two seeds made one script")
	}
	owners := map[store.Owner]bool{}
	for d := range deed(len(deedNames)) {
		if !slices.ContainsFunc(a, func(p step) bool { return p.deed == d }) {
			t.Errorf("%q never comes in 500 steps", deedNames[d])
		}
	}
	for i := range a {
		owners[a[i].owner()] = true
		if a[i].describe(&exactTimes) == "" {
			t.Errorf("step %d has no description", i)
		}
	}
	if len(owners) != len(a) {
		t.Errorf("%d steps have %d owners", len(a), len(owners))
	}
}

func TestDiff_EachFieldOfRecord_Compared(t *testing.T) {
	typ := reflect.TypeFor[store.Record]()
	for i := range typ.NumField() {
		var a, b store.Record
		switch f := reflect.ValueOf(&b).Elem().Field(i); f.Interface().(type) {
		case store.Key:
			b.Key.Tenant = "t"
		case store.Owner:
			b.Owner[3] = 1
		case store.Fingerprint:
			b.Fingerprint.Sum = "s"
		case store.Outcome:
			b.Outcome.Body = []byte("b")
		case []store.FormerOwner:
			b.FormerOwners = []store.FormerOwner{{Attempt: 1}}
		default:
			switch {
			case f.CanInt():
				f.SetInt(1)
			case f.CanUint():
				f.SetUint(1)
			case f.Kind() == reflect.String:
				f.SetString("s")
			default: // a time
				f.Set(reflect.ValueOf(store.Time(1)))
			}
		}
		name := typ.Field(i).Name
		if same(&a, &b) || !strings.HasPrefix(diff(a, b), name+" is ") {
			t.Errorf("records that differ in %s: same is %v, and the difference %q", name, same(&a, &b), diff(a, b))
		}
		if d := diff(b, b); d != "" {
			t.Errorf("a record differs from itself: %s", d)
		}
	}
}

func TestNames_Complete(t *testing.T) {
	if len(sightNames) != int(sights) || len(deedWeights) != len(deedNames) || len(opNames) != int(ops) || len(modeNames) != int(modes) {
		t.Error("a list of names is too short")
	}
	var sum, one tally
	one[sawPark] = 2
	sum.add(&one)
	sum.add(&one)
	if sum[sawPark] != 4 || len(sum.missing(sawClockBack)) != int(sights)-2 || !strings.Contains(sum.String(), "park 4") {
		t.Errorf("tallies add up to %v", &sum)
	}
}
