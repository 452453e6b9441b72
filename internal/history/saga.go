package history

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// The parts of the names of steps that package saga records by itself.
const (
	SagaBack     = "saga:back"      // the saga has turned back
	SagaOperator = "saga:operator:" // a SagaDecision; a number follows
	SagaUndo     = ":undo"          // the compensation of the step before it
	SagaBegun    = ":begun:"        // a Parked step begins; a number follows
	SagaNone     = ":none:"         // that beginning had no effect
	SagaSkip     = ":skip:"         // an operator says that the step is done; a number follows
	SagaUnskip   = ":unskip:"       // that skip does not count any more
)

// CompensationOf is the prefix of the error of a compensation. The name of its step follows, quoted.
const CompensationOf = "the compensation of step "

// SkipOf is the prefix of the error of a saga that is stuck at an operator's skip. The name of the step
// or compensation follows, quoted.
const SkipOf = "an operator's skip of "

// StepEvent says in words what a step means that package saga records besides those of a
// definition: "step charge began". Empty: the step is the definition's, or a compensation.
func StepEvent(name string) string {
	for part, words := range map[string]string{
		SagaBegun:  "step %s began; it must not be repeated after doubt",
		SagaNone:   "step %s did not happen that time",
		SagaSkip:   "an operator skipped %s",
		SagaUnskip: "the skip of %s does not count any more",
	} {
		if step, _, ok := strings.Cut(name, part); ok {
			return fmt.Sprintf(words, step)
		}
	}
	return ""
}

// Skips finds the skips that count, and returns the recorded step of each by the name of what
// is skipped: the last one, unless it does not count any more. recorded has all steps by name.
func Skips(recorded map[string]*store.Step) map[string]*store.Step {
	skips := map[string]*store.Step{}
	for at := range recorded {
		name, _, ok := strings.Cut(at, SagaSkip)
		if ok && skips[name] == nil {
			n := NextSkip(recorded, name) - 1
			if recorded[fmt.Sprint(name, SagaUnskip, n)] == nil {
				skips[name] = recorded[fmt.Sprint(name, SagaSkip, n)]
			}
		}
	}
	return skips
}

// NextSkip is the number of the next skip of a step or compensation; the first is 1.
func NextSkip(recorded map[string]*store.Step, name string) int {
	n := 1
	for recorded[fmt.Sprint(name, SagaSkip, n)] != nil {
		n++
	}
	return n
}

// SagaDecision is an operator's decision about a stuck saga, as the saga's record keeps it.
type SagaDecision struct {
	Why         string // the operator, and the reason
	NotHappened []string
	Done        string
	Back        bool
	// Stuck says how the saga was stuck when the operator decided. Nil: an earlier version
	// has recorded the decision, and did not keep it.
	Stuck *StuckAttempt `json:",omitempty"`
}

// StuckAttempt is an attempt of a saga that ended in waiting for an operator.
type StuckAttempt struct {
	Attempt int
	Since   time.Time
	Error   string
}

// SagaDecisionIn reads the decision that a step of a saga keeps. ok is false if the step
// keeps none. The error says that it cannot be read, because it is encrypted, for example.
func SagaDecisionIn(s *store.Step) (d SagaDecision, ok bool, err error) {
	if !strings.HasPrefix(s.Name, SagaOperator) {
		return d, false, nil
	}
	err = json.Unmarshal(s.Outcome.Body, &d)
	return d, true, err
}

// String is what was decided, in the words of the commands: "skip charge".
func (d *SagaDecision) String() string {
	var words []string
	if d.Done != "" {
		words = append(words, "skip "+d.Done)
	}
	if d.Back {
		words = append(words, "back")
	}
	if len(words) == 0 {
		words = append(words, "retry")
	}
	for _, name := range d.NotHappened {
		words = append(words, name+" did not happen")
	}
	return strings.Join(words, "; ")
}

// String is the attempt in words.
func (a *StuckAttempt) String() string {
	if a.Attempt == 0 { // the count was given back
		return "An attempt: stuck"
	}
	return fmt.Sprintf("Attempt %d: stuck", a.Attempt)
}

// StuckSaga is what is known of a stuck saga, so that an operator is offered only the
// decisions that make sense.
type StuckSaga struct {
	Back    bool     // it has turned back already
	InDoubt []string // Parked steps that may have happened
	// Undo is the step whose compensation is stuck. Empty: none is, or the record does not
	// say which.
	Undo string
	// Steps are the steps that have not ended, as far as the record names them: those in
	// doubt, and those in the last error.
	Steps []string
	// InvalidSkip is what an operator has skipped by a name that is none, or with a result that
	// cannot be read. It does not count.
	InvalidSkip string
	// ErrorCut says that the record keeps only the beginning of the last error, so that there
	// may be more Steps.
	ErrorCut bool
}

// SkipNotInDoubt reports whether there is an InvalidSkip, of a step that is not in InDoubt.
func (s StuckSaga) SkipNotInDoubt() bool {
	return s.InvalidSkip != "" && !slices.Contains(s.InDoubt, s.InvalidSkip)
}

var (
	quotedStep   = regexp.MustCompile(`step ("(?:[^"\\]|\\.)*")( is not in Steps)?`)
	compensation = regexp.MustCompile(CompensationOf + `("(?:[^"\\]|\\.)*")`)
)

// DescribeStuck looks at the record and the steps of a stuck saga.
func DescribeStuck(r *store.Record, steps []store.Step) StuckSaga {
	var s StuckSaga
	has, recorded := map[string]bool{}, map[string]*store.Step{}
	for i := range steps {
		has[steps[i].Name], recorded[steps[i].Name] = !steps[i].Outcome.Gone, &steps[i]
	}
	text, isCut := strings.CutSuffix(r.LastError, "…")
	s.ErrorCut = isCut
	for name := range Skips(recorded) {
		has[name] = true
		if says := SkipOf + strconv.Quote(name); strings.Contains(text, says) || isCut && strings.HasPrefix(says, text) {
			s.InvalidSkip, has[name] = name, false
		}
	}
	s.Back = has[SagaBack]
	for i := range steps {
		name, n, began := strings.Cut(steps[i].Name, SagaBegun)
		if began && !has[name] && !has[name+SagaNone+n] {
			s.InDoubt = append(s.InDoubt, name)
		}
	}
	s.Steps = slices.Clone(s.InDoubt)
	for _, m := range quotedStep.FindAllStringSubmatch(r.LastError, -1) {
		name, err := strconv.Unquote(m[1])
		if err == nil && m[2] == "" && !has[name] && !slices.Contains(s.Steps, name) {
			s.Steps = append(s.Steps, name)
		}
	}
	if m := compensation.FindStringSubmatch(r.LastError); m != nil && s.Back {
		if name, err := strconv.Unquote(m[1]); err == nil && !has[name+SagaUndo] {
			s.Undo = name
		}
	}
	return s
}

// Undecided is a step in doubt about which a decision says nothing, so that the saga would be
// stuck at it again. A decision that skips a step may leave others for later, unless it also
// turns the saga back.
func (s *StuckSaga) Undecided(notHappened []string, done string, back bool) (step string, ok bool) {
	if done != "" && !back {
		return "", false
	}
	for _, name := range s.InDoubt {
		if name != done && !slices.Contains(notHappened, name) {
			return name, true
		}
	}
	return "", false
}
