//go:build unix

package dboscompare

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A step returns an error that is not for good, once.
func TestCompare_PlainError(t *testing.T) {
	fail := func(c *call, n int) answer {
		if c.String() == "charge" && n == 1 {
			return fails
		}
		return agrees
	}
	both(t, spec{}, func(t *testing.T, w *world) {
		w.answers(fail)
		w.start(t, "first", func(s *spec) { s.Run = []string{"a"} })
		w.saw(t, "status", w.end(t, "a"), want{"completed", "ERROR: the ledger answers 500 Internal Server Error"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge charge ship", "hold charge -hold"})
		if w.contender == "DBOS" { // with retries of the step
			w.start(t, "second", func(s *spec) { s.Run, s.Executor, s.Retries = []string{"b"}, "second", 3 })
			w.saw(t, "status with retries", w.end(t, "b"), want{dbos: "SUCCESS"})
			w.saw(t, "effects with retries", w.trace("b"), want{dbos: "hold charge charge ship"})
		}
	})
}

// A compensation fails until it gives up. Then the other system works again, and an
// operator lets the saga go on. Another saga has undone all: how do the two differ?
func TestCompare_CompensationGivesUp(t *testing.T) {
	both(t, spec{Retries: 2}, func(t *testing.T, w *world) {
		w.answers(func(c *call, _ int) answer {
			switch {
			case c.String() == "ship":
				return refuses
			case c.String() == "-hold" && c.Saga == "a":
				return fails
			}
			return agrees
		})
		w.start(t, "first", func(s *spec) { s.Run = []string{"a"} })
		w.saw(t, "status of the one that gave up", w.end(t, "a"), want{`unknown: UndoAttempts (3) is used up; the last attempt: the compensation of step "hold"…`, "ERROR: …"})
		w.start(t, "second", func(s *spec) { s.Run, s.Executor = []string{"b"}, "second" })
		w.saw(t, "status of the one that undid all", w.end(t, "b"), want{"failed: refused", "ERROR: …"})
		w.answers(func(*call, int) answer { return agrees })
		if err := w.watch.again(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		w.until(t, "a", "-hold", 4)
		w.saw(t, "status after the operator", w.end(t, "a"), want{"failed: refused", "ERROR: …"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge ship -charge -hold -hold -hold -hold", "hold charge ship -charge -hold -hold -hold -hold"})
	})
}

// The caller leaves while the saga undoes its steps.
func TestCompare_CallerLeavesWhileItTurnsBack(t *testing.T) {
	both(t, spec{}, func(t *testing.T, w *world) {
		release := make(chan struct{})
		w.answers(func(c *call, n int) answer {
			if c.String() == "-charge" && n == 1 {
				<-release
			}
			return refuse("ship")(c, n)
		})
		s := w.base
		s.Executor = "caller"
		r := w.open(t, s)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			w.until(t, "a", "-charge", 1)
			leave()
			close(release)
		}()
		_, err := r.run(ctx, "a")
		t.Logf("%s: the caller gets: %v", w.contender, err)
		w.saw(t, "status", w.end(t, "a"), want{"failed: refused", "CANCELLED"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge ship -charge -hold", "hold charge ship -charge"})
		_, err = r.run(t.Context(), "b") // the context of a process, which does not end
		w.saw(t, "effects of one that is not the caller's", w.trace("b"), want{"hold charge ship -charge -hold", "hold charge ship -charge -hold"})
		if err == nil {
			t.Error("a saga that turned back has no error")
		}
	})
}

// The deadline passes while a step runs. The step ends, and nobody has its result.
func TestCompare_Deadline(t *testing.T) {
	both(t, spec{}, func(t *testing.T, w *world) {
		if w.contender == "Semel" { // its deadline is in the code
			w.killAt(t, "a", "charge", 1, nil)
			w.start(t, "second", func(s *spec) { s.Deadline = time.Microsecond })
		} else {
			held := make(chan struct{})
			t.Cleanup(func() { close(held) })
			w.answers(func(c *call, _ int) answer {
				if c.String() == "charge" {
					<-held
				}
				return agrees
			})
			w.start(t, "first", func(s *spec) { s.Run, s.Deadline = []string{"a"}, 20*time.Second })
			w.until(t, "a", "charge", 1)
			w.until(t, "a", "returned", 1)
		}
		w.saw(t, "status", w.end(t, "a"), want{"failed: the deadline of 1µs has passed", "CANCELLED"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge -charge -hold", "hold charge"})
		for _, c := range w.find("a", "-charge") {
			if !c.InDoubt {
				t.Error("the compensation of charge was not told that it is in doubt")
			}
		}
	})
}

// A saga sleeps for an hour, and another one runs in the same process.
func TestCompare_SleepingSagaDelaysNone(t *testing.T) {
	both(t, spec{Steps: []string{"hold", nap, "ship"}, Sleeper: "a", Nap: time.Hour}, func(t *testing.T, w *world) {
		released := make(chan struct{})
		w.answers(func(c *call, _ int) answer {
			if c.Saga == "b" { // so that the other begins later
				<-released
			}
			return agrees
		})
		w.start(t, "first", func(s *spec) { s.Run = []string{"a", "b"} })
		w.whenRecorded(t, "a", nap)
		close(released)
		w.until(t, "b", "returned", 1)
		w.saw(t, "status of the other", w.end(t, "b"), want{"completed", "SUCCESS"})
		w.saw(t, "effects of the one that sleeps", w.trace("a"), want{"hold", "hold"})
	})
}

// A process is killed while its saga sleeps, and another one goes on.
func TestCompare_KilledWhileItSleeps(t *testing.T) {
	both(t, spec{Steps: []string{"hold", nap, "ship"}, Sleeper: "a", Nap: 4 * time.Second}, func(t *testing.T, w *world) {
		p := w.start(t, "first", func(s *spec) { s.Run = []string{"a"} })
		until := w.whenRecorded(t, "a", nap)
		p.Kill()
		w.start(t, "second", nil)
		w.saw(t, "status", w.end(t, "a"), want{"completed", "SUCCESS"})
		w.saw(t, "effects", w.trace("a"), want{"hold ship", "hold ship"})
		if again := w.watch.recorded(t.Context(), "a", nap); again != until {
			t.Errorf("the sleep ends at %s, and after the restart at %s", until, again)
		}
		t.Logf("%s: the recorded end of the sleep stays %s", w.contender, until)
	})
}

// whenRecorded waits until a step is recorded.
func (w *world) whenRecorded(t *testing.T, id, step string) string {
	t.Helper()
	over := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if text := strings.TrimSpace(w.watch.recorded(t.Context(), id, step)); text != "" {
			return text
		}
		if time.Now().After(over) {
			t.Fatalf("%s of %s is not recorded", step, id)
		}
	}
}
