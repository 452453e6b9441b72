package storm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// book compares each record that a store returns with the records of the same key
// that it has returned before.
type book struct {
	mu    sync.Mutex
	pages map[store.Key]*page
	wrong []string
}

// page is the known facts of one key.
type page struct {
	fence   uint64 // the highest
	owners  map[store.Owner]uint64
	fences  map[uint64]store.Owner
	there   bool          // there was a record
	ended   *store.Record // the terminal one
	created time.Time     // when the latest known life of the key began
	latest  uint64        // the latest known fence of that life
	// freed are the fences of claims that began a life and were settled as without
	// effect, perhaps: such a settlement ends the life.
	freed map[uint64]bool
}

// known is what was known when a call of the store began.
type known struct {
	key   store.Key
	fence uint64
	there bool
	ended *store.Record
	owner map[store.Owner]bool
}

func (b *book) init() { b.pages = map[store.Key]*page{} }

func (b *book) errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail(format, args...)
}

func (b *book) broken() bool { return len(b.verdicts()) > 0 }

// verdicts are what is wrong, so far.
func (b *book) verdicts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrong)
}

// fail notes what is wrong. The caller holds mu.
func (b *book) fail(format string, args ...any) {
	if len(b.wrong) < 20 {
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
}

// stays reports whether a key's record outlives the storm, once it is there.
func stays(k store.Key) bool {
	return !strings.HasPrefix(k.Value, "brief-") && !strings.Contains(k.Operation, "##")
}

func (b *book) page(k store.Key) *page {
	p := b.pages[k]
	if p == nil {
		p = &page{owners: map[store.Owner]uint64{}, fences: map[uint64]store.Owner{}, freed: map[uint64]bool{}}
		b.pages[k] = p
	}
	return p
}

func (b *book) begin(k store.Key, owner store.Owner) known {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page(k)
	_, met := p.owners[owner]
	return known{key: k, fence: p.fence, there: p.there, ended: p.ended, owner: map[store.Owner]bool{owner: met}}
}

// saw checks the answer of a call, given the facts that were known when the call
// began.
func (b *book) saw(was known, f *store.Found, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, p := was.key, b.page(was.key)
	if errors.Is(err, store.ErrNotFound) && was.there && stays(k) && !p.freedSince(was.fence) {
		b.fail("%v: its record is lost", k)
	}
	if err != nil {
		return
	}
	r := &f.Record
	if r.Key != k {
		b.fail("%v: the store gave the record of %v", k, r.Key)
		return
	}
	met, asked := was.owner[r.Owner]
	if r.Fence < was.fence || f.Won && asked && !met && r.Fence == was.fence {
		b.fail("%v: the fence went from %d to %d, won %v", k, was.fence, r.Fence, f.Won)
	}
	// A claim that arrives after its record was swept makes another record.
	if old, ok := p.owners[r.Owner]; ok && old != r.Fence && stays(k) && !p.freed[min(old, r.Fence)] {
		b.fail("%v: one owner has the fences %d and %d", k, old, r.Fence)
	}
	if old, ok := p.fences[r.Fence]; ok && old != r.Owner {
		b.fail("%v: two owners have the fence %d", k, r.Fence)
	}
	p.owners[r.Owner], p.fences[r.Fence], p.fence, p.there = r.Fence, r.Owner, max(p.fence, r.Fence), true
	if !stays(k) {
		return
	}
	switch {
	case p.created.IsZero() || r.Created.Equal(p.created):
		p.created, p.latest = r.Created, max(p.latest, r.Fence)
	case r.Created.After(p.created):
		if !p.freed[p.latest] {
			b.fail("%v: it began anew", k)
		}
		p.created, p.latest = r.Created, r.Fence
	case !p.freed[r.Fence]:
		b.fail("%v: an earlier life is back", k)
	}
	if was.ended != nil && !same(was.ended, r) {
		b.fail("%v: it had ended as %v, and is %v now", k, brev(was.ended), brev(r))
	}
	if r.State.Terminal() {
		b.end(k, p, r)
	}
}

// freedSince reports whether a life may have ended that had a fence or a later one.
func (p *page) freedSince(fence uint64) bool {
	for f := range p.freed {
		if f >= fence {
			return true
		}
	}
	return false
}

// settling notes a settlement before it is sent, because it may be carried out
// without an answer.
func (b *book) settling(l store.Lease, s store.Settlement) {
	if s.State == store.Released && s.Keep == 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.page(l.Key).freed[l.Fence] = true
	}
}

// settled judges a settlement that the store says to have carried out.
func (b *book) settled(was known, l store.Lease, s store.Settlement) {
	if !stays(l.Key) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &store.Record{Key: l.Key, State: s.State, Fence: l.Fence, Owner: l.Owner, Outcome: s.Outcome}
	if was.ended != nil && !same(was.ended, r) {
		b.fail("%v: it had ended as %v, and was settled as %v", l.Key, brev(was.ended), brev(r))
	}
	if was.fence > l.Fence {
		b.fail("%v: the owner of the fence %d settled it, and it had %d", l.Key, l.Fence, was.fence)
	}
	if s.State.Terminal() {
		b.end(l.Key, b.page(l.Key), r)
	}
}

// end notes the end of a key. The caller holds mu.
func (b *book) end(k store.Key, p *page, r *store.Record) {
	if p.ended != nil && !same(p.ended, r) {
		b.fail("%v: it ended as %v and as %v", k, brev(p.ended), brev(r))
	}
	c := *r
	p.ended = &c
}

func same(a, b *store.Record) bool {
	return a.State == b.State && a.Fence == b.Fence && a.Outcome.Equal(b.Outcome)
}

func brev(r *store.Record) string {
	return fmt.Sprintf("%v %q (fence %d)", r.State, r.Outcome.Body, r.Fence)
}

// tap is a store whose answers the book judges.
type tap struct {
	st   store.Store
	s    *storm
	slow bool
}

func (t tap) Unwrap() store.Store { return t.st }

func (t tap) lag() {
	if t.slow {
		t.s.lag()
	}
}

func (t tap) found(k store.Key, owner store.Owner, call func() (store.Found, error)) (store.Found, error) {
	was := t.s.begin(k, owner)
	t.lag()
	f, err := call()
	t.s.saw(was, &f, err)
	t.lag()
	return f, err
}

func (t tap) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return t.found(p.Key, p.Owner, func() (store.Found, error) { return t.st.Claim(ctx, p) })
}

func (t tap) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return t.found(seen.Key, p.Owner, func() (store.Found, error) { return t.st.Swap(ctx, seen, p) })
}

func (t tap) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return t.found(k, store.Owner{}, func() (store.Found, error) { return t.st.Get(ctx, k) })
}

func (t tap) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	t.lag()
	return t.st.Renew(ctx, held, d)
}

func (t tap) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	was := t.s.begin(l.Key, l.Owner)
	t.s.settling(l, s)
	t.lag()
	err := t.st.Settle(ctx, l, s)
	if err == nil {
		t.s.settled(was, l, s)
	}
	t.lag()
	return err
}

func (t tap) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return t.st.Sweep(ctx, from, limit)
}
