package linear

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/semel-go/semel/store"
)

// Kind is a method of a store.
type Kind uint8

// The methods of a store, of its journal and of its timers. A sweep, a renewal of
// several leases, and a look for due timers is an operation on each key.
const (
	Claim Kind = iota
	Swap
	Renew
	Settle
	Get
	Sweep
	RecordStep
	Steps
	SetTimer
	DropTimer
	DueTimers
)

var kindNames = [...]string{"Claim", "Swap", "Renew", "Settle", "Get", "Sweep", "RecordStep", "Steps", "SetTimer", "DropTimer", "DueTimers"}

// String is the method's name.
func (k Kind) String() string { return kindNames[k] }

// reads reports whether the method changes nothing.
func (k Kind) reads() bool { return k == Get || k == Steps || k == DueTimers }

func (k Kind) ofTimer() bool { return k == SetTimer || k == DropTimer || k == DueTimers }

// Input holds the arguments of a call on one key.
type Input struct {
	Kind       Kind
	Cached     bool // Claim: the times of a terminal record may be a cache's
	Sharded    bool // DueTimers: the time is that of the slowest of several clocks
	Key        store.Key
	Seen       store.Seen       // Swap
	Proposal   store.Proposal   // Claim, Swap
	Lease      store.Lease      // Renew, Settle, RecordStep, Steps
	For        time.Duration    // Renew, SetTimer, DueTimers
	Settlement store.Settlement // Settle
	Step       store.Step       // RecordStep
	Version    store.Owner      // SetTimer, DropTimer: the version seen
	Next       store.Owner      // SetTimer
}

// Answer is the reply to a call. The zero Answer is a lost reply: the call may have
// been applied, or may be applied later.
type Answer struct {
	Known  bool
	Found  store.Found // Claim, Swap, Get
	Err    error       // nil, store.ErrNotFound, store.ErrLeaseLost or store.ErrChanged
	Now    time.Time   // Sweep, DueTimers
	Lapsed bool        // Sweep: the record was handed back, and is in Found
	Steps  []store.Step
	Set    bool        // SetTimer
	Timer  store.Timer // DueTimers: the timer of the key, if it is due
}

// History collects operations. The zero History is empty. Not safe for
// concurrent use.
type History struct {
	clock int64
	ops   []porcupine.Operation
}

// Tick advances the history's own clock and returns its time.
func (h *History) Tick() int64 {
	h.clock++
	return h.clock
}

// Call adds an operation that was called at a time and has not returned. It
// returns the operation's number.
func (h *History) Call(client int, at int64, in *Input) int {
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: at, Output: &Answer{}, Return: math.MaxInt64})
	return len(h.ops) - 1
}

// Return adds the answer of operation n, and the time of its return.
func (h *History) Return(n int, at int64, a *Answer) {
	a.Known = true
	h.ops[n].Output, h.ops[n].Return = a, at
}

// Arrive tells that operation n had reached the store at a time, although its
// reply was lost. Without it, an operation whose reply was lost may take effect at
// any time until the end.
func (h *History) Arrive(n int, at int64) { h.ops[n].Return = at }

// Len is the number of operations.
func (h *History) Len() int { return len(h.ops) }

// Result is the result of Check.
type Result = porcupine.CheckResult

// The results of Check. Unknown means that the timeout has passed.
const (
	Ok      = porcupine.Ok
	Illegal = porcupine.Illegal
	Unknown = porcupine.Unknown
)

// Check judges a history. A timeout of zero means none.
func Check(h *History, timeout time.Duration) Result {
	return porcupine.CheckOperationsTimeout(model, h.known(), timeout)
}

// known are the operations that prove something: a read whose reply was lost does not.
func (h *History) known() []porcupine.Operation {
	known := make([]porcupine.Operation, 0, len(h.ops))
	for _, op := range h.ops {
		if !op.Input.(*Input).Kind.reads() || op.Output.(*Answer).Known {
			known = append(known, op)
		}
	}
	return known
}

// Wrong lists the operations of the keys whose history is not linearizable, in the order
// of their calls.
func Wrong(h *History) string {
	var b strings.Builder
	for _, ops := range byKey(h.known()) {
		if porcupine.CheckOperations(model, ops) {
			continue
		}
		for _, op := range ops {
			fmt.Fprintf(&b, "client %d, %d to %d: %+v: %+v\n", op.ClientId, op.Call, op.Return, *op.Input.(*Input), *op.Output.(*Answer))
		}
	}
	return b.String()
}

var model = (&porcupine.NondeterministicModel{
	Partition: byKey,
	Init:      func() []any { return []any{row{}} },
	Step:      func(s, in, out any) []any { return step(s.(row), in.(*Input), out.(*Answer)) },
	Equal:     func(a, b any) bool { return a == b },
}).ToModel()

// byKey splits a history by key, because operations on different keys are
// independent, and so are the record and the timer of a key.
func byKey(all []porcupine.Operation) (parts [][]porcupine.Operation) {
	type part struct {
		key   store.Key
		timer bool
	}
	by := map[part]int{}
	for _, op := range all {
		in := op.Input.(*Input)
		k := part{in.Key, in.Kind.ofTimer()}
		i, ok := by[k]
		if !ok {
			i = len(parts)
			by[k] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}
