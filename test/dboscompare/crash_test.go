//go:build unix

package dboscompare

import (
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// killAt kills a process that runs the saga at the nth call of a kind, before the call
// has its answer.
func (w *world) killAt(t *testing.T, saga, kind string, n int, change func(s *spec)) {
	t.Helper()
	killed := make(chan struct{})
	before := w.answer
	w.answers(func(c *call, number int) answer {
		if c.String() == kind && number == n {
			<-killed
		}
		return before(c, number)
	})
	p := w.start(t, "first", func(s *spec) {
		s.Run = []string{saga}
		if change != nil {
			change(s)
		}
	})
	w.until(t, saga, kind, n)
	p.Kill()
	close(killed)
}

// refuse refuses a step the first time.
func refuse(step string) func(c *call, n int) answer {
	return func(c *call, n int) answer {
		if c.String() == step && n == 1 {
			return refuses
		}
		return agrees
	}
}

// A process is killed after the effect of a step and before its record.
func TestCompare_KilledBetweenEffectAndRecord(t *testing.T) {
	both(t, spec{}, func(t *testing.T, w *world) {
		w.killAt(t, "a", "charge", 1, nil)
		w.start(t, "second", nil)
		w.saw(t, "status", w.end(t, "a"), want{"completed", "SUCCESS"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge charge ship", "hold charge charge ship"})
		w.oneKey(t, "a", "charge")
	})
}

// The same with a step that must not be repeated.
func TestCompare_KilledBetweenEffectAndRecord_ParkedStep(t *testing.T) {
	both(t, spec{Parked: "charge"}, func(t *testing.T, w *world) {
		w.killAt(t, "a", "charge", 1, nil)
		w.start(t, "second", nil)
		w.saw(t, "status", w.end(t, "a"), want{"unknown: step \"charge\" began in an earlier attempt, and may have happened", "SUCCESS"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge", "hold charge charge ship"})
	})
}

// A step is refused for good, and the process is killed while it undoes the step before.
// When another process goes on, the refused step would succeed.
func TestCompare_KilledWhileItTurnsBack(t *testing.T) {
	both(t, spec{}, func(t *testing.T, w *world) {
		w.answers(refuse("ship"))
		w.killAt(t, "a", "-charge", 1, nil)
		w.start(t, "second", nil)
		w.saw(t, "status", w.end(t, "a"), want{"failed: refused", "ERROR: refused"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge ship -charge -charge -hold", "hold charge ship -charge -charge -hold"})
		w.oneKey(t, "a", "-charge")
		if key := w.find("a", "charge")[0].Key; key == w.find("a", "-charge")[0].Key {
			t.Errorf("step and compensation have the same key %q", key)
		}
	})
}

// A process that runs a saga lives, and a second one starts. Both contenders have their
// defaults: processes of DBOS have the same executor ID then.
func TestCompare_SecondProcessStarts_FirstLives(t *testing.T) {
	both(t, spec{Lease: 30 * time.Second}, func(t *testing.T, w *world) {
		release := w.holdFirst(t, "charge")
		w.start(t, "first", func(s *spec) { s.Run = []string{"a"} })
		w.until(t, "a", "charge", 1)
		w.start(t, "second", func(s *spec) { s.Run = []string{"b"} })
		w.until(t, "b", "returned", 1) // so the second process works
		if w.contender == "DBOS" {
			w.until(t, "a", "ship", 1)
		}
		release()
		w.until(t, "a", "returned", 1)
		w.saw(t, "status", w.end(t, "a"), want{"completed", "SUCCESS"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge ship", "hold charge charge ship"})
	})
}

// holdFirst lets the first call of a step wait until release.
func (w *world) holdFirst(t *testing.T, kind string) (release func()) {
	held := make(chan struct{})
	w.answers(func(c *call, n int) answer {
		if c.Saga == "a" && c.String() == kind && n == 1 {
			<-held
		}
		return agrees
	})
	done := false
	release = func() {
		if !done {
			close(held)
		}
		done = true
	}
	t.Cleanup(release)
	return release
}

// A process is frozen in a step. Another process takes its saga over: with Semel when the
// lease has expired, with DBOS because it has the executor ID of the first. Then the first
// goes on.
func TestCompare_FrozenProcessWakes(t *testing.T) {
	both(t, spec{}, func(t *testing.T, w *world) {
		release := w.holdFirst(t, "charge")
		first := w.start(t, "first", func(s *spec) { s.Run = []string{"a"} })
		w.until(t, "a", "charge", 1)
		freeze(t, first)
		w.start(t, "second", nil)
		w.saw(t, "status", w.end(t, "a"), want{"completed", "SUCCESS"})
		release()
		thaw(t, first)
		w.until(t, "a", "returned", 1) // in the first process
		w.saw(t, "effects", w.trace("a"), want{"hold charge charge ship", "hold charge charge ship"})
		w.saw(t, "the frozen process returns", w.find("a", "returned")[0].Returned, want{"error: semel: lease lost…", "done a"})
	})
}

// The process of a saga is killed, and another one works that has another executor ID.
func TestCompare_Killed_OtherExecutorWorks(t *testing.T) {
	both(t, spec{}, func(t *testing.T, w *world) {
		w.killAt(t, "a", "charge", 1, func(s *spec) { s.Executor = "host-1" })
		second := w.other(t)
		if w.contender == "DBOS" {
			text, _ := w.watch.status(t.Context(), "a")
			w.saw(t, "while another executor works", text, want{dbos: "PENDING"})
			second.Kill()
			w.start(t, "third", func(s *spec) { s.Executor = "host-1" })
		}
		w.saw(t, "status", w.end(t, "a"), want{"completed", "SUCCESS"})
		process := w.find("a", "ship")[0].Process
		w.saw(t, "finished by the process", process, want{"second", "third"})
	})
}

// other starts a process with another executor ID, and waits until it has run a saga.
func (w *world) other(t *testing.T) *proctest.Process {
	t.Helper()
	p := w.start(t, "second", func(s *spec) { s.Run, s.Executor = []string{"b"}, "host-2" })
	w.until(t, "b", "returned", 1)
	return p
}

// freeze stops a process as SIGSTOP does, and thaw lets it go on.
func freeze(t *testing.T, p *proctest.Process) { signal(t, p, syscall.SIGSTOP) }
func thaw(t *testing.T, p *proctest.Process)   { signal(t, p, syscall.SIGCONT) }

func signal(t *testing.T, p *proctest.Process, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}
