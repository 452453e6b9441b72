//go:build unix

package dboscompare

import "testing"

// A process is killed in a saga, and a version of the code with another order of steps
// goes on, as the same application version of DBOS.
func TestCompare_StepsReordered(t *testing.T) {
	both(t, spec{Version: "1"}, func(t *testing.T, w *world) {
		w.killAt(t, "a", "ship", 1, nil)
		w.start(t, "second", func(s *spec) { s.Steps = []string{"charge", "hold", "ship"} })
		w.saw(t, "status", w.end(t, "a"), want{"completed", "ERROR: …"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge ship ship", "hold charge ship"})
	})
}

// The same with a step that has another name.
func TestCompare_StepRenamed(t *testing.T) {
	both(t, spec{Version: "1"}, func(t *testing.T, w *world) {
		w.killAt(t, "a", "ship", 1, nil)
		w.start(t, "second", func(s *spec) { s.Steps = []string{"hold", "pay", "ship"} })
		w.saw(t, "status", w.end(t, "a"), want{`unknown: step "charge" is recorded, but not in Steps of the definition…`, "ERROR: …"})
		w.saw(t, "effects", w.trace("a"), want{"hold charge ship", "hold charge ship -hold"})
	})
}

// The same, with the default of DBOS: each build is an application version of its own.
func TestCompare_StepRenamed_OtherApplicationVersion(t *testing.T) {
	both(t, spec{Version: "1"}, func(t *testing.T, w *world) {
		w.killAt(t, "a", "ship", 1, nil)
		second := w.start(t, "second", func(s *spec) { s.Steps, s.Version, s.Run = []string{"hold", "pay", "ship"}, "2", []string{"b"} })
		w.until(t, "b", "returned", 1)
		if w.contender == "DBOS" {
			text, _ := w.watch.status(t.Context(), "a")
			w.saw(t, "while version 2 works", text, want{dbos: "PENDING"})
		} else {
			w.saw(t, "while version 2 works", w.end(t, "a"), want{semel: `unknown: step "charge" is recorded, but not in Steps of the definition…`})
			if err := w.watch.again(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		second.Kill()
		w.start(t, "third", nil)
		w.until(t, "a", "ship", 2)
		w.saw(t, "status after version 1 is back", w.end(t, "a"), want{"completed", "SUCCESS"})
	})
}
