package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// life is one life of a key: from the record's making to its expiry, if it can
// expire.
type life struct {
	key     store.Key
	created int64 // microseconds of the store's clock; if nothing expires, a number
}

// claimID names a claim: no key ever gives a fence twice.
type claimID struct {
	key   store.Key
	fence uint64
}

// recorded is the first outcome of a life.
type recorded struct {
	fence uint64
	state store.State
	out   store.Outcome
}

// truth stands beside the store and sees each change that is really made: it
// knows what has been recorded, whatever the Guards were told.
type truth struct {
	w      *world
	st     store.Store
	lax    bool // only what callers and handlers see is judged: for the controls
	sent   int
	now    map[store.Key]store.Record
	fences map[store.Key]uint64 // the highest ever
	first  map[life]recorded
	asked  map[life]beginning
	claims map[claimID]life
	freed  map[store.Key][]int64 // when the lives began in which nothing happened
	steps  map[life]map[string]recordedStep
	hist   *history
}

func (t *truth) init(w *world, st store.Store) {
	*t = truth{
		w: w, st: st, now: map[store.Key]store.Record{}, fences: map[store.Key]uint64{}, first: map[life]recorded{},
		asked: map[life]beginning{}, claims: map[claimID]life{}, freed: map[store.Key][]int64{}, steps: map[life]map[string]recordedStep{},
	}
}

// lifeOf is the life that a record is of. If nothing can expire before the end, a key
// has one life, and one more for each that ended because nothing happened in it.
func (t *truth) lifeOf(r *store.Record) life {
	created := store.Micros(r.Created)
	if t.w.plan.retention < forever {
		return life{r.Key, created}
	}
	freed := t.freed[r.Key]
	if i := slices.Index(freed, created); i >= 0 {
		return life{r.Key, int64(i)}
	}
	return life{r.Key, int64(len(freed))} // it goes on; its clock may be behind that of an earlier life
}

// judge is a violation that only the store's own book shows.
func (t *truth) judge(ok bool, format string, args ...any) {
	if !ok && !t.lax {
		t.w.fail(format, args...)
	}
}

var background = context.Background()

func (t *truth) claim(p *process, c *call, pr store.Proposal) reply {
	f, err := t.st.Claim(background, pr)
	if err == nil {
		t.changed(p, c, &pr, &f, nil)
	}
	return reply{found: f, err: err}
}

func (t *truth) swap(p *process, c *call, seen store.Seen, pr store.Proposal) reply {
	f, err := t.st.Swap(background, seen, pr)
	if err == nil {
		t.changed(p, c, &pr, &f, &seen)
	}
	return reply{found: f, err: err}
}

// changed compares what a claim or swap has made of the record with the rules.
func (t *truth) changed(p *process, c *call, pr *store.Proposal, f *store.Found, seen *store.Seen) {
	w, r := t.w, &f.Record
	old, there := t.now[pr.Key]
	if !f.Won || there && old.Owner == pr.Owner && old.State == pr.State {
		switch {
		case f.Won:
			w.reach(ownClaimFound)
		case seen != nil:
			w.reach(swapRaced)
		case there && old.State == store.Processing:
			w.reach(claimRaced)
		}
		t.judge(!there || same(&old, r), "%v changed though nothing was won: %v, was %v", pr.Key, r, &old)
		return
	}
	t.now[pr.Key] = *r
	id := claimID{pr.Key, r.Fence}
	if there && old.Created.Equal(r.Created) && !pr.Restart { // a key may begin anew within one microsecond
		t.judge(!old.State.Terminal() || old.Expired(f.Now), "%v: an outcome was replaced by %v", pr.Key, r.State)
		t.judge(old.State != store.Processing || old.Lapsed(f.Now) || w.jumps > 0, "%v: a live claim was taken", pr.Key)
		t.judge(old.State != store.Unknown || pr.State != store.Processing || strings.HasSuffix(pr.Holder, " reconciling"), "%v: a parked call ran again", pr.Key)
	} else {
		t.judge(!there || old.Expired(f.Now) || w.jumps > 0, "%v began anew though it had not expired", pr.Key)
		if there {
			w.reach(expiredRestarted)
		}
		if c != nil {
			t.asked[t.lifeOf(r)] = beginning{c.payload, r.Fence}
		}
	}
	t.judge(r.Fence > t.fences[pr.Key], "%v: fence %d after %d", pr.Key, r.Fence, t.fences[pr.Key])
	if w.now().UnixMicro() < int64(t.fences[pr.Key]) {
		w.reach(floorUsed)
	}
	if old.State == store.Unknown && r.State == store.Released && r.Attempt < old.Attempt {
		w.book.reset[pr.Key] = true // an operator's word counts for more than the limit
	}
	t.fences[pr.Key] = max(r.Fence, t.fences[pr.Key])
	t.claims[id] = t.lifeOf(r)
	if r.State == store.Processing {
		p.last = id
	}
	t.recorded(r)
	w.note(r.State.String()+" "+pr.Key.Value, r.Attempt, int64(r.Fence))
}

// recorded keeps a life's first outcome.
func (t *truth) recorded(r *store.Record) {
	l := t.lifeOf(r)
	if _, ok := t.first[l]; r.State.Terminal() && !ok {
		t.first[l] = recorded{r.Fence, r.State, r.Outcome.Clone()}
	}
}

func (t *truth) renew(held []store.Lease, d time.Duration) reply {
	errs, err := t.st.Renew(background, held, d)
	for i, l := range held {
		if err != nil || errs[i] != nil {
			continue
		}
		r := t.now[l.Key]
		t.judge(r.Lease() == l && r.State == store.Processing, "%v: a lease was renewed that is not held", l.Key)
		if f, err := t.st.Get(background, l.Key); err == nil {
			t.now[l.Key] = f.Record
			t.w.reach(renewed)
		}
	}
	return reply{errs: errs, err: err}
}

func (t *truth) settle(l store.Lease, s store.Settlement) reply {
	err := t.st.Settle(background, l, s)
	old := t.now[l.Key]
	f, gerr := t.st.Get(background, l.Key)
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		t.judge(gerr != nil || same(&old, &f.Record), "%v: a refused settlement changed it", l.Key)
		if old.Fence > l.Fence {
			t.w.reach(zombieRefused)
		}
	case err == nil && !t.lax:
		t.judge(gerr == nil && old.Lease() == l, "%v: settled by somebody who does not hold it", l.Key)
		t.judge(old.State == store.Processing || same(&old, &f.Record), "%v: settled in state %v", l.Key, old.State)
	}
	if err == nil && gerr == nil {
		if old.State == store.Processing && s.State == store.Released && s.Attempt < old.Attempt {
			t.w.reach(givenBack)
		}
		if old.State == store.Processing && s.State == store.Released && s.Keep == 0 {
			t.freed[l.Key] = append(t.freed[l.Key], store.Micros(old.Created))
		}
		t.now[l.Key] = f.Record
		t.recorded(&f.Record)
		t.w.note("settled "+f.Record.State.String()+" "+l.Key.Value, f.Record.Attempt, int64(l.Fence))
	}
	return reply{err: err}
}

func (t *truth) get(k store.Key) reply {
	f, err := t.st.Get(background, k)
	if old, there := t.now[k]; err == nil {
		t.judge(there && same(&old, &f.Record), "%v: read %v, is %v", k, &f.Record, &old)
	} else {
		t.judge(!there, "%v is lost: %v", k, err)
	}
	return reply{found: f, err: err}
}

func (t *truth) list(f store.Filter) reply {
	var r reply
	for fd, err := range t.st.(store.Lister).List(background, f) {
		if err != nil {
			return reply{err: err}
		}
		r.list = append(r.list, fd)
	}
	slices.SortFunc(r.list, func(a, b store.Found) int { return byKey(a.Record.Key, b.Record.Key) })
	return r
}

func (t *truth) sweep(from store.Cursor, limit int) reply {
	res, err := t.st.Sweep(background, from, limit)
	slices.SortFunc(res.Lapsed, func(a, b store.Record) int { return byKey(a.Key, b.Key) })
	for k, old := range t.now {
		if _, err := t.st.Get(background, k); !errors.Is(err, store.ErrNotFound) {
			continue
		}
		t.judge(old.Expired(res.Now), "%v: swept in state %v, it expires %v, now %v", k, old.State, old.Expires, res.Now)
		delete(t.now, k)
		t.w.reach(swept)
	}
	for i := range res.Lapsed {
		t.judge(res.Lapsed[i].Lapsed(res.Now), "%v: given as lapsed at %v, but it is %v until %v", res.Lapsed[i].Key, res.Now, res.Lapsed[i].State, res.Lapsed[i].Until)
	}
	return reply{swept: res, err: err}
}

func byKey(a, b store.Key) int {
	return strings.Compare(a.Operation+"\x00"+a.Value, b.Operation+"\x00"+b.Value)
}

// same compares what a change would change.
func same(a, b *store.Record) bool {
	return a.Seen() == b.Seen() && a.Attempt == b.Attempt && a.Created.Equal(b.Created) && a.Updated.Equal(b.Updated) && a.Outcome.Equal(b.Outcome)
}

// end is when nothing moves any more.
func (t *truth) end() {
	for k, r := range t.now {
		l := t.lifeOf(&r)
		first, ok := t.first[l]
		t.judge(!ok || r.State == first.state && r.Outcome.Equal(first.out), "%v: the outcome on record is not the first", k)
		t.judge(!r.Lapsed(t.w.now()), "%v is still %v, and lapsed", k, r.State)
	}
}
