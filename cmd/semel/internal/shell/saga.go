package shell

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/history"
)

// SagaDecisions offers the decisions that make sense about a stuck saga. which is its name and
// its id, and flags are those of every decision.
func SagaDecisions(which []string, flags string, s history.StuckSaga) []string {
	notHappened, result := "", " --result JSON"
	if s.SkipNotInDoubt() {
		notHappened = Flag("not-happened", s.InvalidSkip)
	}
	takenBack := notHappened
	retry := func() string { return Command("semel saga retry", which, flags, notHappened) }
	back := func() string { return Command("semel saga back", which, flags, notHappened) }
	skip := func(step, result string) string {
		others := takenBack
		if step == s.InvalidSkip {
			others = ""
		}
		return Command("semel saga skip", append(slices.Clone(which), step), result, flags, others)
	}
	if len(s.InDoubt) > 0 {
		start := "find out whether "
		if s.Back {
			start = "the saga has turned back. Find out whether "
		}
		lines := []string{start + strings.Join(s.InDoubt, ", ") + " happened, then one of (--result is the result of the step, --not-happened says that it did not happen):"}
		for _, name := range s.InDoubt {
			lines = append(lines, skip(name, result))
			notHappened += Flag("not-happened", name)
		}
		if lines = append(lines, retry()); !s.Back {
			lines = append(lines, back())
		}
		return lines
	}
	switch {
	case s.Undo != "":
		return []string{"the saga has turned back, and the compensation of " + s.Undo + " is stuck. Mend the cause and try it again, or undo " + s.Undo + " by hand and skip its compensation:",
			retry(), skip(s.Undo+history.SagaUndo, "")}
	case s.Back:
		return []string{"the saga has turned back. Mend the cause and try again, or undo a step by hand and skip its compensation, with the step's name in place of STEP:", retry(), skip("STEP"+history.SagaUndo, "")}
	}
	lines := []string{"mend the cause, then one of (skip a step only if it was done by hand; --result is its result):", retry()}
	for _, name := range s.Steps {
		lines = append(lines, skip(name, result))
	}
	if len(s.Steps) == 0 {
		lines[0] = "find out whether a step was running, and happened; mend the cause, then one of (skip a step only if it was done; --result is its result):"
		lines = append(lines, skip("STEP", result))
	}
	return append(lines, back())
}
