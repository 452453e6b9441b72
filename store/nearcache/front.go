package nearcache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// front is a fast store that processes share. Every failure of the front counts as a
// miss.
type front struct {
	st            store.Store
	timeout       time.Duration
	cooldown      time.Duration
	cooldownUntil atomic.Int64 // by the monotonic clock of stamp
}

const (
	// frontSuffix is the suffix of the operation of keys in the front, so that they are
	// not the keys of anybody who uses the front as a store.
	frontSuffix = "##front"
	// metaHeader names the last header line of an outcome in the front, which
	// holds a frontMeta as JSON.
	metaHeader = "semel-nearcache-2"
	// frontLease is how long a process may take to write a record.
	frontLease = 10 * time.Second
)

func frontKey(k store.Key) store.Key {
	k.Operation += frontSuffix
	return k
}

// frontMeta is what a record in the front has beside the fields of the store's
// record that it shares. Times are in microseconds.
type frontMeta struct {
	KeyDigest                   []byte
	State                       store.State
	Policy                      store.Policy
	Fence                       uint64
	Owner                       []byte
	Created, Updated, Completed int64
	Expires                     int64
	LastError                   string
	Clock                       int64         // the store's clock, or later, when the record was sent
	Life                        time.Duration // how long from then on the record may be used
	Estimated                   bool
	FormerOwners                []byte `json:",omitempty"`
}

// frontRecord is a record that was read from the front.
type frontRecord struct {
	record store.Record
	meta   frontMeta
	age    time.Duration // at least the time since it was sent
}

// settlement is what the front keeps of an entry.
func (e *entry) settlement(clock time.Time, life, keep time.Duration) store.Settlement {
	r := &e.record
	digest := r.Key.Digest()
	meta, err := json.Marshal(frontMeta{
		KeyDigest: digest[:], State: r.State, Policy: r.Policy, Fence: r.Fence, Owner: r.Owner[:], Created: store.Micros(r.Created),
		Updated: store.Micros(r.Updated), Completed: store.Micros(r.Completed), Expires: store.Micros(r.Expires),
		LastError: r.LastError, Clock: store.Micros(clock), Life: life, Estimated: e.estimated,
		FormerOwners: store.EncodeFormerOwners(r.FormerOwners),
	})
	if err != nil {
		panic(err) // only an invalid state has no JSON, and it is not replayable
	}
	o := r.Outcome
	o.Header = append(slices.Clip(o.Header), store.Header{Name: metaHeader, Value: string(meta)})
	return store.Settlement{State: store.Completed, Attempt: r.Attempt, Error: fenceFloorText(r.Fence), Keep: max(life, keep), Outcome: o}
}

// parseFront is the record of k that f, which the front returned, holds. It has
// been there since f's Created, by the front's clock; if that clock was set
// back, nobody can tell for how long.
func parseFront(f *store.Found, k store.Key) (v frontRecord, ok bool) {
	v.record, v.age = f.Record, f.Now.Sub(f.Record.Created)
	h, digest := v.record.Outcome.Header, k.Digest()
	last := len(h) - 1
	if v.record.Key != frontKey(k) || v.age < 0 || !replayable(&f.Record, f.Now) || last < 0 || h[last].Name != metaHeader {
		return v, false
	}
	m := &v.meta
	if json.Unmarshal([]byte(h[last].Value), m) != nil || !bytes.Equal(m.KeyDigest, digest[:]) || len(m.Owner) != len(store.Owner{}) {
		return v, false
	}
	r := &v.record
	r.Key, r.State, r.Policy, r.Fence, r.Owner, r.Outcome.Header = k, m.State, m.Policy, m.Fence, store.Owner(m.Owner), h[:last]
	r.Created, r.Updated = store.Time(m.Created), store.Time(m.Updated)
	r.Completed, r.Expires, r.LastError = store.Time(m.Completed), store.Time(m.Expires), m.LastError
	owners, err := store.DecodeFormerOwners(m.FormerOwners)
	if r.FormerOwners = owners; err != nil {
		return v, false
	}
	return v, replayable(r, store.Time(m.Clock))
}

// call lets fn use the front, unless the front failed within FrontCooldown. Errors
// that are an answer, or the caller's, do not count as a failure.
func (f *front) call(ctx context.Context, now stamp, fn func(ctx context.Context) error) bool {
	if now.mono < f.cooldownUntil.Load() {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := fn(limited)
	switch {
	case err == nil:
		return true
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrLeaseLost), errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrCorrupt), ctx.Err() != nil:
	default:
		f.cooldownUntil.Store(now.mono + int64(f.cooldown))
	}
	return false
}

// readFront looks a key up in the front. Nil: a miss.
func (s *Store) readFront(ctx context.Context, k store.Key, exact bool) *entry {
	asked := s.stamp()
	var f store.Found
	if !s.front.call(ctx, asked, func(ctx context.Context) (err error) {
		f, err = s.front.st.Get(ctx, frontKey(k))
		return err
	}) {
		return nil
	}
	v, ok := parseFront(&f, k)
	if !ok || exact && v.meta.Estimated {
		return nil
	}
	life := v.meta.Life - v.age - drift(v.age)
	expires := v.record.Expires.Add(-s.skew)
	if life <= 0 || !s.now().Before(expires) { // the front's clock and this process's have to agree
		return nil
	}
	e := newEntry(&v.record)
	e.asked, e.answered, e.estimated = asked, asked, v.meta.Estimated
	e.clock, e.life = store.Time(v.meta.Clock).Add(v.age), life
	return e
}

// writeFront writes an entry to the front. Its caller has its answer already,
// and waits for FrontTimeout at most.
func (s *Store) writeFront(ctx context.Context, e *entry) {
	if s.front == nil {
		return
	}
	s.front.call(context.WithoutCancel(ctx), e.answered, func(ctx context.Context) error {
		p := frontProposal(e.record.Key, e.record.Fence)
		p.Holder, p.Fingerprint = e.record.Holder, e.record.Fingerprint
		f, err := s.front.st.Claim(ctx, p)
		if err != nil {
			return err
		}
		if !f.Won {
			if !replaces(&f, e.record.Key, e.record.Fence, e.estimated) {
				return nil
			}
			p.Restart = true
			if f, err = s.front.st.Swap(ctx, f.Record.Seen(), p); err != nil || !f.Won {
				return err
			}
		}
		// The front counts the record's age from before this stamp.
		_, passed := s.stamp().since(e.asked)
		if e.life <= passed {
			return nil
		}
		return s.front.st.Settle(ctx, f.Record.Lease(), e.settlement(e.clock.Add(passed), e.life-passed, s.swapLife()))
	})
}

// frontProposal is the claim of a process that writes a record with this fence.
func frontProposal(k store.Key, fence uint64) store.Proposal {
	return store.Proposal{Key: frontKey(k), State: store.Processing, Owner: protocol.NewOwner(), Holder: "nearcache", Attempt: 1, Lease: frontLease, Error: fenceFloorText(fence)}
}

// The LastError of a record or mark in the front holds a fence. Only a record with at least
// this fence may replace it. So a process that read the record before a swap cannot write it
// back, even after the writer of a later record has died or that record has expired.
const fenceFloorPrefix = "fence "

func fenceFloorText(fence uint64) string { return fenceFloorPrefix + strconv.FormatUint(fence, 10) }

func fenceFloor(r *store.Record) uint64 {
	text, _ := strings.CutPrefix(r.LastError, fenceFloorPrefix)
	fence, _ := strconv.ParseUint(text, 10, 64) // another's record has none
	return fence
}

// swapLife is how long after a swap any process may use, and therefore write, a
// record that it read before.
func (s *Store) swapLife() time.Duration { return s.maxAge + drift(s.maxAge) + s.skew }

// replaces reports whether a record with this fence may take the place of f in the
// front.
func replaces(f *store.Found, k store.Key, fence uint64, estimated bool) bool {
	if fence < fenceFloor(&f.Record) {
		return false
	}
	switch store.Decide(&f.Record, &store.Call{Policy: f.Record.Policy, Fingerprint: f.Record.Fingerprint}, f.Now).Action {
	case store.Execute, store.TakeOver:
		return true
	case store.Replay:
		v, ok := parseFront(f, k)
		return !ok || v.meta.Fence < fence || v.meta.Fence == fence && (v.meta.Estimated && !estimated || v.meta.Life <= v.age)
	}
	return false // another process writes it
}

// markSwapped puts a mark in the place of a record in the front.
func (s *Store) markSwapped(ctx context.Context, seen *store.Seen) {
	if s.front == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.front.timeout)
	defer cancel()
	p := frontProposal(seen.Key, seen.Fence+1)
	f, err := s.front.st.Get(ctx, p.Key)
	if errors.Is(err, store.ErrNotFound) {
		if f, err = s.front.st.Claim(ctx, p); err == nil && f.Won {
			_ = s.front.st.Settle(ctx, f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Error: p.Error, Keep: s.swapLife()})
			return
		}
	}
	p.State, p.Keep, p.Restart = store.Completed, s.swapLife(), true
	for ctx.Err() == nil && err == nil && !f.Won && fenceFloor(&f.Record) <= seen.Fence {
		f, err = s.front.st.Swap(ctx, f.Record.Seen(), p)
	}
}

// frontCursor is the prefix of a cursor in the front. After it come the store's clock at the
// end of its part of the pass, in microseconds, a space, and the front's own cursor.
const frontCursor = "\x00front "

// Sweep implements store.Store. A pass over the store ends with one over the front, which has
// half of the time left: its deletions are not counted, and an error there ends the pass.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (res store.SweepResult, err error) {
	tail, inFront := strings.CutPrefix(string(from), frontCursor)
	if !inFront || s.front == nil {
		if res, err = s.st.Sweep(ctx, from, limit); err != nil || res.Next != "" || s.front == nil {
			return res, err
		}
		tail = ""
	}
	clock, cursor, _ := strings.Cut(tail, " ")
	if inFront {
		micros, err := strconv.ParseInt(clock, 10, 64)
		if err != nil {
			return res, fmt.Errorf("nearcache: sweep cursor is %q; it must be empty or the Next of this store's last step", from)
		}
		res.Now = store.Time(micros)
	}
	inTime, cancel := store.PartContext(ctx)
	defer cancel()
	f, err := s.front.st.Sweep(inTime, store.Cursor(cursor), limit)
	if err != nil {
		return res, ctx.Err()
	}
	for i := range f.Lapsed { // their writers died
		s.release(inTime, &f.Lapsed[i])
	}
	if f.Next != "" {
		res.Next = store.Cursor(frontCursor+strconv.FormatInt(store.Micros(res.Now), 10)+" ") + f.Next
	}
	return res, nil
}

// release frees a key of the front, if it is one of the cache's.
func (s *Store) release(ctx context.Context, r *store.Record) {
	if !strings.HasSuffix(r.Key.Operation, frontSuffix) {
		return
	}
	p := store.Proposal{Key: r.Key, State: store.Released, Owner: protocol.NewOwner(), Holder: "nearcache", Error: r.LastError}
	if fenceFloor(r) > 0 {
		p.Keep = s.swapLife()
	}
	_, _ = s.front.st.Swap(ctx, r.Seen(), p)
}
