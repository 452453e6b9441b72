package orders

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
)

// play makes a plan with two workers in this process, and audits it.
func play(t *testing.T, semel bool, plan []Order) (Findings, []*State) {
	t.Helper()
	dir := t.TempDir()
	o := Options{Shop: filepath.Join(dir, "shop.db"), File: filepath.Join(dir, "orders.db"), Lease: time.Minute, Semel: semel}
	shop, err := OpenShop(t.Context(), o.Shop, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	app, err := OpenApp(t.Context(), &o, shop)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	for i := range plan {
		for range 2 { // a client that sends again
			if err := app.Place(t.Context(), &plan[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	paths := []string{filepath.Join(dir, "1"), filepath.Join(dir, "2")}
	for _, path := range paths {
		w := o
		w.Journal = path
		go func() { ended <- Serve(ctx, &w) }()
	}
	answers := until(t, app, len(plan))
	var states []*State
	var tails []*journal.Tail[Entry]
	for _, path := range paths {
		s := NewState()
		tail := journal.NewTail(path, s.Apply)
		for s.Boots == 0 { // the other worker may have done all before this one works
			select {
			case err := <-ended:
				t.Fatalf("a worker ended at once: %v", err)
			case <-time.After(time.Millisecond):
			}
			if err := tail.Update(); err != nil {
				t.Fatal(err)
			}
		}
		states, tails = append(states, s), append(tails, tail)
	}
	cancel()
	for range paths {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for _, tail := range tails {
		if err := tail.Update(); err != nil {
			t.Error(err)
		}
	}
	b, err := shop.Books(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Audit(plan, answers, &b), states
}

// until waits until so many orders have ended.
func until(t *testing.T, app App, n int) map[string]Answer {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		answers, err := app.Answers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for _, a := range answers {
			if a.End != Open {
				ended++
			}
		}
		if ended == n {
			return answers
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d orders have ended after 2 minutes", ended, n)
		}
		if err := pause(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// Without kills both apps are right: the faults of the one come from kills alone.
func TestServe_NoKills_BooksAddUp(t *testing.T) {
	for name, semel := range map[string]bool{"without Semel": false, "with Semel": true} {
		t.Run(name, func(t *testing.T) {
			plan := NewPlan(1, 40)
			f, states := play(t, semel, plan)
			if all := f.Sentences(); len(all) != 0 || f.Booked+f.Refused+f.Undone != 40 || f.Booked == 0 || f.Refused == 0 || f.Undone == 0 {
				t.Errorf("got %+v, %q", f, all)
			}
			runs, requests := 0, 0
			for _, s := range states {
				runs += s.Runs
				requests += s.Requests
				if s.Boots != 1 || s.PID == 0 || s.InFlight() != 0 || s.Known != 0 || len(s.Took) != s.Runs {
					t.Errorf("state %+v", s)
				}
			}
			if runs != 40 || requests < 100 {
				t.Errorf("%d runs, %d requests", runs, requests)
			}
		})
	}
}

func TestShop_RequestAgain_RecognisedAndUnchanged(t *testing.T) {
	shop, err := OpenShop(t.Context(), filepath.Join(t.TempDir(), "shop.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	o := &Order{ID: "a", Cents: 100, Refuser: Book}
	for i, want := range []bool{false, true} {
		if known, err := shop.change(t.Context(), o, Pay, "k", ""); known != want || err != nil {
			t.Errorf("request %d: known %v, %v", i, known, err)
		}
	}
	if _, err := shop.change(t.Context(), o, Book, "l", ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "book of a") {
		t.Errorf("got %v", err)
	}
	b, err := shop.Books(t.Context())
	want := Books{Bank: 100, Stock: pieces, Movements: []Movement{{Key: "k", Step: Pay, Order: "a", Amount: 100}}}
	if err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestState_Boot_CutsOrdersOff(t *testing.T) {
	s := NewState()
	for _, e := range []Entry{
		{Kind: Boot, PID: 1}, {Kind: Begun, Order: "a"}, {Kind: Done, Order: "a", Known: true}, {Kind: Begun, Order: "a"}, {Kind: Begun, Order: "b"},
	} {
		s.Apply(&e)
	}
	if s.Runs != 2 || s.Requests != 3 || s.Known != 1 || s.InFlight() != 2 {
		t.Errorf("got %+v", s)
	}
	for _, e := range []Entry{
		{Kind: Boot, PID: 2}, {Kind: Begun, Order: "b"}, {Kind: Begun, Order: "c"}, {Kind: Begun, Order: "d"},
		{Kind: Ended, Order: "b", Took: time.Second}, {Kind: Left, Order: "c"},
	} {
		s.Apply(&e)
	}
	if s.Boots != 2 || s.PID != 2 || s.Runs != 5 || s.InFlight() != 1 || len(s.Took) != 1 {
		t.Errorf("got %+v", s)
	}
	s.StopMeasuring()
	s.Apply(&Entry{Kind: Ended, Order: "d", Took: time.Second})
	if len(s.Took) != 1 || s.InFlight() != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestServe_NoFiles_IsError(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none", "file")
	for name, o := range map[string]Options{
		"journal": {Journal: none},
		"shop":    {Journal: filepath.Join(t.TempDir(), "j"), Shop: none},
		"file":    {Journal: filepath.Join(t.TempDir(), "j"), Shop: filepath.Join(t.TempDir(), "s"), File: none, Semel: true},
	} {
		if err := Serve(t.Context(), &o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
