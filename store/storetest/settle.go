package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

var settleChecks = []check{
	{"ends a claim in each final state", settleEnds},
	{"needs owner, fence and Processing", settleNeeds},
	{"the same settlement sent again succeeds and changes nothing", settleAgain},
	{"another settlement after it is ErrLeaseLost", settleDiffers},
	{"never creates a record", settleAbsent},
	{"an owner that lost its lease to a swap is refused", settleZombie},
	{"a lapsed claim that nobody took over still settles", settleLapsed},
	{"outcomes come back byte for byte", settleOutcomes},
	{"any error text is accepted", settleErrorText},
	{"one of many concurrent settlements wins", settlePack},
}

// finals are the states that a settlement ends in.
var finals = []store.State{store.Released, store.Completed, store.Failed, store.Unknown}

func settleEnds(b *bed) {
	for _, s := range finals {
		for _, attempt := range []int{0, 1} {
			held := b.claim(proposal(key(fmt.Sprint(s, attempt)), store.Processing)).Record
			end := settlement(s, 20*time.Minute)
			end.Attempt, end.Wait = attempt, 10*time.Minute
			b.tick()
			r := b.settle(held.Lease(), end)
			if d := diff(end.Apply(held, r.Updated), r); d != "" {
				b.Errorf("settled as %v: %s", s, d)
			}
		}
	}
}

// refused fails unless the settlement is ErrLeaseLost and changes nothing.
func (b *bed) refused(was store.Record, l store.Lease, s store.Settlement, why string) {
	b.Helper()
	if err := b.st.Settle(b.Context(), l, s); !errors.Is(err, store.ErrLeaseLost) {
		b.Errorf("settling as %v %s: error %v, want ErrLeaseLost", s.State, why, err)
	}
	b.unchanged(was)
}

func settleNeeds(b *bed) {
	for _, s := range finals {
		held := b.put(key(s.String()), store.Processing, long)
		l := held.Lease()
		l.Owner[15] ^= 1
		b.refused(held, l, settlement(s, long), "with another owner")
		l = held.Lease()
		l.Owner = store.Owner{}
		b.refused(held, l, settlement(s, long), "with no owner")
		l = held.Lease()
		l.Fence--
		b.refused(held, l, settlement(s, long), "with a lower fence")
		l.Fence += 2
		b.refused(held, l, settlement(s, long), "with a higher fence")

		started := b.put(key("started "+s.String()), store.Started, long)
		b.refused(started, started.Lease(), settlement(s, long), "a Started record")
		for _, other := range finals {
			if other != s {
				r := b.put(key(s.String()+" after "+other.String()), other, long)
				b.refused(r, r.Lease(), settlement(s, long), "a "+other.String()+" record")
			}
		}
	}
}

func settleAgain(b *bed) {
	for _, s := range finals {
		held := b.put(key(s.String()), store.Processing, long)
		end := settlement(s, long)
		r := b.settle(held.Lease(), end)
		if b.h.Advance != nil {
			b.h.Advance(b.TB, b.st, time.Minute)
		}
		for i := range 4 {
			if err := b.handle(i).Settle(b.Context(), held.Lease(), end); err != nil {
				b.Errorf("the same settlement as %v again: %v", s, err)
			}
		}
		b.unchanged(r)
	}
}

func settleDiffers(b *bed) {
	for _, s := range []store.State{store.Completed, store.Failed} {
		held := b.put(key(s.String()), store.Processing, long)
		end := settlement(s, long)
		was := b.settle(held.Lease(), end)
		for name, change := range map[string]func(*store.Settlement){
			"state":        func(t *store.Settlement) { t.State = store.Completed + store.Failed - s },
			"unknown":      func(t *store.Settlement) { *t = settlement(store.Unknown, long) },
			"released":     func(t *store.Settlement) { *t = settlement(store.Released, long) },
			"code":         func(t *store.Settlement) { t.Outcome.Code++ },
			"codec":        func(t *store.Settlement) { t.Outcome.Codec += "x" },
			"gone":         func(t *store.Settlement) { t.Outcome.Gone = true },
			"body":         func(t *store.Settlement) { t.Outcome.Body[3] ^= 1 },
			"longer body":  func(t *store.Settlement) { t.Outcome.Body = append(t.Outcome.Body, 0) },
			"no body":      func(t *store.Settlement) { t.Outcome.Body = nil },
			"no header":    func(t *store.Settlement) { t.Outcome.Header = nil },
			"header value": func(t *store.Settlement) { t.Outcome.Header[1].Value = "3" },
			"header order": func(t *store.Settlement) { slices.Reverse(t.Outcome.Header) },
			"header name":  func(t *store.Settlement) { t.Outcome.Header[1].Name = "X-B" },
		} {
			other := end
			other.Outcome = end.Outcome.Clone()
			change(&other)
			b.refused(was, held.Lease(), other, "with another "+name+" after "+s.String())
		}
	}
}

func settleAbsent(b *bed) {
	for _, s := range finals {
		k := key("never " + s.String())
		err := b.st.Settle(b.Context(), store.Lease{Key: k, Owner: newOwner(), Fence: 1}, settlement(s, long))
		if !errors.Is(err, store.ErrLeaseLost) {
			b.Errorf("settling an absent record as %v: error %v, want ErrLeaseLost", s, err)
		}
		b.absent(k)

		gone := b.put(key("swept "+s.String()), store.Completed, b.short())
		b.outlive(gone.Key)
		b.sweepAll(100)
		b.absent(gone.Key)
		if err := b.st.Settle(b.Context(), gone.Lease(), settlement(s, long)); !errors.Is(err, store.ErrLeaseLost) {
			b.Errorf("settling a swept record as %v: error %v, want ErrLeaseLost", s, err)
		}
		b.absent(gone.Key)
	}
}

func settleZombie(b *bed) {
	for _, s := range finals {
		zombie := b.put(key(s.String()), store.Processing, b.short())
		b.outlive(zombie.Key)
		owner := b.swap(zombie.Seen(), proposal(zombie.Key, store.Processing)).Record
		b.refused(owner, zombie.Lease(), settlement(s, long), "by an owner that lost its lease")
		mixed := owner.Lease()
		mixed.Fence = zombie.Fence
		b.refused(owner, mixed, settlement(s, long), "with the old fence")

		end := settlement(store.Completed, long)
		done := b.settle(owner.Lease(), end)
		b.refused(done, zombie.Lease(), settlement(s, long), "by an owner that lost its lease, after the settlement")
		b.refused(done, zombie.Lease(), end, "by an owner that lost its lease, with the outcome of the new owner")

		// One owner may come back, with a fence of its own for each claim.
		back := proposal(done.Key, store.Processing)
		back.Owner = zombie.Owner
		again := b.swap(done.Seen(), back).Record
		b.refused(again, zombie.Lease(), settlement(s, long), "with the fence of the same owner's earlier claim")
	}
}

func settleLapsed(b *bed) {
	for _, s := range finals {
		held := b.put(key(s.String()), store.Processing, b.short())
		b.outlive(held.Key)
		if r := b.settle(held.Lease(), settlement(s, long)); r.State != s {
			b.Errorf("settling a lapsed claim left it %v, want %v", r.State, s)
		}
	}
}

func header(namesAndValues ...string) (lines []store.Header) {
	for i := 0; i < len(namesAndValues); i += 2 {
		lines = append(lines, store.Header{Name: namesAndValues[i], Value: namesAndValues[i+1]})
	}
	return lines
}

// outcomes are outcomes that a store damages easily.
func outcomes() map[string]store.Outcome {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return map[string]store.Outcome{
		"zero":             {},
		"nil body":         {Code: 204},
		"empty body":       {Code: 200, Body: []byte{}, Header: []store.Header{}},
		"binary body":      {Code: 200, Body: all, Codec: "raw"},
		"text body":        {Code: 200, Body: []byte("{\"ü\": \"日本\"}\r\n"), Codec: "json"},
		"body not UTF-8":   {Body: []byte("caf\xe9\x00\xff")},
		"1 MiB body":       {Code: 201, Body: bytes.Repeat(all, 1<<12), Header: []store.Header{{Name: "Etag", Value: `"x"`}}},
		"headers":          {Code: 303, Header: header("X-Many", "1", "Location", "/a b?c=d&e=%20", "X-Many", "", "X-Many", "1", "X-Many", "a,b", "X-Many", "\"q\"")},
		"header no text":   {Header: header("", "", "X-\xff", "\x00<&>\u2028")},
		"header not UTF-8": {Header: header("X-Latin1", "caf\xe9", "X-Latin1", "\x80\xff")},
		"tombstone":        {Code: 200, Gone: true},
		"negative code":    {Code: -1},
	}
}

func settleOutcomes(b *bed) {
	for name, o := range outcomes() {
		for _, s := range []store.State{store.Completed, store.Failed} {
			held := b.put(key(name+s.String()), store.Processing, long)
			end := store.Settlement{State: s, Attempt: 1, Outcome: o.Clone(), Keep: long}
			if b.tooLarge(held, end) {
				continue
			}
			r := b.settle(held.Lease(), end)
			if !o.Equal(r.Outcome) {
				b.Errorf("%v with %s: Get gives %s, want %s", s, name, brief(r.Outcome), brief(o))
			}
			if f, err := b.handle(1).Claim(b.Context(), proposal(r.Key, store.Processing)); err != nil || !o.Equal(f.Record.Outcome) {
				b.Errorf("%v with %s: Claim gives %s, error %v, want %s", s, name, brief(f.Record.Outcome), err, brief(o))
			}
			if f, err := b.st.Swap(b.Context(), held.Seen(), proposal(r.Key, store.Processing)); err != nil || !o.Equal(f.Record.Outcome) {
				b.Errorf("%v with %s: a lost Swap gives %s, error %v, want %s", s, name, brief(f.Record.Outcome), err, brief(o))
			}
			if err := b.st.Settle(b.Context(), held.Lease(), end); err != nil {
				b.Errorf("%v with %s again: %v", s, name, err)
			}
			p := proposal(r.Key, s)
			p.Outcome = o.Clone()
			if f := b.swap(r.Seen(), p); !o.Equal(f.Record.Outcome) || !o.Equal(b.get(r.Key).Record.Outcome) {
				b.Errorf("%v with %s by a Swap: %s, want %s", s, name, brief(f.Record.Outcome), brief(o))
			}
		}
	}
}

// tooLarge reports whether the store refuses an outcome as too large. It may do
// so before it has changed anything, and it must accept a tombstone instead.
func (b *bed) tooLarge(held store.Record, end store.Settlement) bool {
	b.Helper()
	if err := b.st.Settle(b.Context(), held.Lease(), end); !errors.Is(err, store.ErrTooLarge) {
		return false
	}
	b.unchanged(held)
	if len(end.Outcome.Body) < 100_000 {
		b.Errorf("an outcome of %d bytes is ErrTooLarge", len(end.Outcome.Body))
	}
	end.Outcome.Body, end.Outcome.Gone = nil, true
	if r := b.settle(held.Lease(), end); !r.Outcome.Equal(end.Outcome) {
		b.Errorf("the tombstone in place of a body that is too large: Get gives %s", brief(r.Outcome))
	}
	return true
}

// settleErrorText settles with texts that are hard to store. Each claim must end.
// A store may change the parts of a text that are not UTF-8.
func settleErrorText(b *bed) {
	for i, text := range []string{"", "plain", "ünï 日本", "a\x00b", "caf\xe9 \xff\xfe", string(bytes.Repeat([]byte("e"), 1<<16))} {
		held := b.put(key(fmt.Sprint("text", i)), store.Processing, long)
		r := b.settle(held.Lease(), store.Settlement{State: store.Released, Attempt: 1, Error: text, Keep: long})
		if r.State != store.Released || (r.LastError == "") != (text == "") {
			b.Errorf("released with error %.20q: %v with error %.20q", text, r.State, r.LastError)
		}
		if i < 3 && r.LastError != text {
			b.Errorf("LastError is %q, want %q", r.LastError, text)
		}
	}
}

func settlePack(b *bed) {
	b.handle(1)
	for round := range 10 {
		held := b.put(key(fmt.Sprint("pack", round)), store.Processing, long)
		var won, lost atomic.Int32
		ends := make([]store.Settlement, 12)
		pack(len(ends), func(i int) {
			ends[i] = settlement([]store.State{store.Completed, store.Failed}[i%2], long)
			switch err := b.handle(i/2).Settle(b.Context(), held.Lease(), ends[i]); {
			case err == nil:
				won.Add(int32(i) + 100)
			case errors.Is(err, store.ErrLeaseLost):
				lost.Add(1)
			default:
				b.Errorf("settlement %d of a pack: %v", i, err)
			}
		})
		if int(lost.Load()) != len(ends)-1 {
			b.Fatalf("%d of %d different settlements of one lease were refused, want all but one", lost.Load(), len(ends))
		}
		if r := b.get(held.Key).Record; !r.Outcome.Equal(ends[won.Load()-100].Outcome) {
			b.Errorf("the record does not hold the outcome whose settlement succeeded")
		}
	}
}
