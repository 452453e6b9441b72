package semel

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

// Handler does the work. Its context ends with the cause ErrLeaseLost shortly
// before another may take over. The Header and Body that it returns are handed
// over: it does not change them afterwards.
type Handler func(ctx context.Context, x *Execution) (Outcome, error)

// Outcome is what is kept of a finished call, and repeated.
type Outcome = store.Outcome

// Header is one line of a response's header.
type Header = store.Header

// Execution is one run of a handler. Safe for concurrent use. Only Semel
// makes one; nil, and a copy, are invalid.
type Execution struct {
	g      *Guard
	policy Policy
	ctx    runContext
	claim
}

// claim is what a run holds of its record.
type claim struct {
	held        // its lease, and its place in the keeper
	attempt     int
	fingerprint string // its sum
	begun       instant
	leased      bool // it has a lease to renew
	keeps       bool // its outcome is kept, so Complete may keep it earlier
	completed   atomic.Uint32
	graced      atomic.Bool // grace is in use
	grace       grace       // of the first settlement, which is mostly the only one
}

// How far Complete has come.
const (
	notCompleted uint32 = iota
	completing
	completed
)

// Scope is whose call it is, and what for.
func (x *Execution) Scope() Scope {
	return Scope{operation: Operation(x.lease.Key.Operation), tenant: x.lease.Key.Tenant, shared: x.lease.Key.Tenant == ""}
}

// Key is the call's idempotency key.
func (x *Execution) Key() string { return x.lease.Key.Value }

// Policy is what happens to this call on doubt.
func (x *Execution) Policy() Policy { return x.policy }

// Fence is the fencing token: it grows with each claim of the key, so a
// downstream system that remembers the highest it has seen can refuse a frozen
// earlier run. 0 in a run without a record (Options.UnprotectedOnOutage).
func (x *Execution) Fence() uint64 { return x.lease.Fence }

// Attempt is 1 for the first run of the handler. A crash counts; an attempt
// that ended with NoEffect does not.
func (x *Execution) Attempt() int { return x.attempt }

// Fingerprint is the hash of the call's payload, in hexadecimal: to show to
// the system downstream. Empty for NoPayload, and in a run without a record.
func (x *Execution) Fingerprint() string { return hex.EncodeToString([]byte(x.fingerprint)) }

// Derive gives a key for a downstream call: the text of a UUID (version 8)
// made of scope, key and step alone, so it is equal for every attempt, and for
// a reconciler. Each step needs a name of its own. A key that is used again
// after its retention derives the same keys again; a rerun (Options.Rerun), which
// is for reads, derives others.
func (x *Execution) Derive(step string) string { return derive(x.lease.Key, step) }

// Step is a recovery point: a child call, for Do with the same Guard. A step
// that has completed does not run again when the handler does.
func (x *Execution) Step(name string) Call {
	child := x.lease.Key
	child.Operation += "#" + name
	c := Call{key: child, payload: NoPayload()}
	if err := checkName("step", name); err != nil {
		c.err = err
	} else if strings.Contains(name, "#") {
		c.err = fmt.Errorf("step %q: must not contain '#', which parts a step's name from its parent's", name)
	} else if len(child.Operation) > 4*maxName {
		c.err = fmt.Errorf("step: nested too deep; the operation's name would have %d bytes, at most %d are allowed", len(child.Operation), 4*maxName)
	}
	return c
}

// Encode makes an outcome of a result, with the Guard's first codec. For
// people who write doors; Do calls it.
func (x *Execution) Encode(v any) (Outcome, error) {
	codec := x.g.opt.Codecs[0]
	body, err := codec.Marshal(v)
	if err != nil {
		return Outcome{}, fmt.Errorf("semel: codec %q: %w", codec.Name(), err)
	}
	return Outcome{Body: body, Codec: codec.Name()}, nil
}

// Complete stores the outcome before the handler returns: for people who
// write doors that must have it stored before they answer, such as one that
// streams. If it succeeds, what the handler returns is not stored. Only the first
// call can succeed. ErrLeaseLost: another may have taken over, do not answer.
// ErrOutcomeNotStored: a duplicate may run again. errors.ErrUnsupported: in a
// transaction, whose commit comes later, or without a record.
func (x *Execution) Complete(ctx context.Context, o Outcome) error {
	if !x.keeps {
		return fmt.Errorf("semel: Complete in this kind of run: %w", errors.ErrUnsupported)
	}
	if !x.completed.CompareAndSwap(notCompleted, completing) {
		return errors.New("semel: Complete was called twice")
	}
	reason := ErrOutcomeNotStored
	switch err := x.g.settle(ctx, x, x.g.completion(o)); {
	case err == nil:
		x.completed.Store(completed)
		x.g.drop(x)
		return nil
	case errors.Is(err, store.ErrLeaseLost):
		reason = ErrLeaseLost
		fallthrough
	default:
		return &Error{Reason: reason, Operation: Operation(x.lease.Key.Operation), Cause: err}
	}
}

// Completed reports whether Complete has stored an outcome.
func (x *Execution) Completed() bool { return x.completed.Load() == completed }

// derive hashes the fields, each behind its length. No secret, for a rotated
// one would give a retry a new key.
func derive(k store.Key, step string) string {
	parent := k.Digest()
	b := append(make([]byte, 0, 128), "semel derive 1\x00"...)
	b = append(b, parent[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(step)))
	b = append(b, step...)
	sum := sha256.Sum256(b)
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // RFC 9562: version 8, variant 10
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// FromContext finds the run that a context belongs to: for handlers whose
// signature is not ours, such as an http.Handler's.
func FromContext(ctx context.Context) (*Execution, bool) {
	x, ok := ctx.Value(executionKey{}).(*Execution)
	return x, ok
}
