package storetest

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel/store"
)

type (
	lease  = store.Lease
	ending = store.Settlement
)

// settleWith replaces what a settlement does; there is what it finds.
func settleWith(fn func(m *model, ctx ctxT, l lease, s ending, w row, there bool) error) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, settle: func(ctx ctxT, l lease, s ending) error {
			w, there := m.row(l.Key)
			return fn(m, ctx, l, s, w, there)
		}}
	}
}

// settleDamages damages the outcome on its way in.
func settleDamages(fn func(o *store.Outcome)) func(m *model) *hooks {
	return settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		s.Outcome = s.Outcome.Clone()
		fn(&s.Outcome)
		return m.Settle(ctx, l, s)
	})
}

func eachValue(o *store.Outcome, fn func(v string) string) {
	for i := range o.Header {
		o.Header[i].Value = fn(o.Header[i].Value)
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

var settleMutants = []mutant{
	{"settles without comparing the fence", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		l.Fence = w.fence
		return m.Settle(ctx, l, s)
	})},
	{"settles without comparing the owner", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		l.Owner = w.owner
		return m.Settle(ctx, l, s)
	})},
	{"settles with any fence that is not lower", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		l.Fence = min(l.Fence, w.fence)
		return m.Settle(ctx, l, s)
	})},
	{"settles a reservation", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state == store.Started && w.owner == l.Owner && w.fence == l.Fence {
			m.edit(l.Key, func(w *row) { w.state = store.Processing })
		}
		return m.Settle(ctx, l, s)
	})},
	{"settles what is settled", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state.Terminal() && w.owner == l.Owner && w.fence == l.Fence {
			m.edit(l.Key, func(w *row) { w.state = store.Processing })
		}
		return m.Settle(ctx, l, s)
	})},
	{"completes what is parked", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state == store.Unknown && w.owner == l.Owner && w.fence == l.Fence {
			m.edit(l.Key, func(w *row) { w.state = store.Processing })
		}
		return m.Settle(ctx, l, s)
	})},
	{"the same settlement again is lost", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state != store.Processing {
			return store.ErrLeaseLost
		}
		return m.Settle(ctx, l, s)
	})},
	{"the same settlement again keeps it longer", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state != store.Processing {
			m.edit(l.Key, func(w *row) { w.expires++ })
		}
		return m.Settle(ctx, l, s)
	})},
	{"another settlement is ignored", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.owner == l.Owner && w.fence == l.Fence && w.state != store.Processing && w.state != store.Started {
			return nil
		}
		return m.Settle(ctx, l, s)
	})},
	{"compares bodies by their length", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if len(s.Outcome.Body) == len(w.out.Body) && w.state != store.Processing {
			s.Outcome.Body = w.out.Body
		}
		return m.Settle(ctx, l, s)
	})},
	{"compares no headers", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state != store.Processing {
			s.Outcome.Header = w.out.Header
		}
		return m.Settle(ctx, l, s)
	})},
	{"settling inserts", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, there bool) error {
		if !there {
			if _, err := m.Claim(ctx, prop{Key: l.Key, State: store.Processing, Owner: l.Owner}); err != nil {
				return err
			}
			m.edit(l.Key, func(w *row) { w.fence = l.Fence })
		}
		return m.Settle(ctx, l, s)
	})},
	{"a lost settlement is not noticed", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		if err := m.Settle(ctx, l, s); !errors.Is(err, store.ErrLeaseLost) {
			return err
		}
		return nil
	})},
	{"a lapsed claim cannot settle", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		if w.state == store.Processing && w.until <= m.clock() {
			return store.ErrLeaseLost
		}
		return m.Settle(ctx, l, s)
	})},
	{"releasing deletes", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		err := m.Settle(ctx, l, s)
		if err == nil && s.State == store.Released {
			m.mu.Lock()
			delete(m.at.rows, l.Key)
			m.mu.Unlock()
		}
		return err
	})},
	{"checks the claim and then settles", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, there bool) error {
		if !there || w.state != store.Processing || w.owner != l.Owner || w.fence != l.Fence {
			return m.Settle(ctx, l, s)
		}
		yield()
		m.edit(l.Key, func(w *row) {
			*w = ended(*w, s.State, s.Attempt, s.Error, s.Outcome, s.Wait, s.Keep, m.clock())
		})
		return nil
	})},
	{"the attempt is not given back", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, w row, _ bool) error {
		s.Attempt = max(s.Attempt, w.attempt)
		return m.Settle(ctx, l, s)
	})},
	{"an error that is no text fails the settlement", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		if !utf8.ValidString(s.Error) {
			return errors.New("invalid byte sequence for encoding UTF8")
		}
		return m.Settle(ctx, l, s)
	})},
	{"large bodies fail without a word", "settle", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		if len(s.Outcome.Body) > 1<<19 {
			return store.ErrTooLarge
		}
		if s.Outcome.Gone {
			s.Outcome = store.Outcome{}
		}
		return m.Settle(ctx, l, s)
	})},
	{"headers are dropped", "settle", settleDamages(func(o *store.Outcome) { o.Header = nil })},
	{"one value a header", "settle", settleDamages(func(o *store.Outcome) {
		seen := map[string]bool{}
		o.Header = slices.DeleteFunc(o.Header, func(h store.Header) bool {
			twice := seen[h.Name]
			seen[h.Name] = true
			return twice
		})
	})},
	{"values of a header are joined", "settle", settleDamages(func(o *store.Outcome) {
		joined := o.Header[:0]
		for _, h := range o.Header {
			if n := len(joined); n > 0 && joined[n-1].Name == h.Name {
				joined[n-1].Value += ", " + h.Value
				continue
			}
			joined = append(joined, h)
		}
		o.Header = joined
	})},
	{"headers without a value are dropped", "settle", settleDamages(func(o *store.Outcome) {
		o.Header = slices.DeleteFunc(o.Header, func(h store.Header) bool { return h.Value == "" })
	})},
	{"headers are sorted", "settle", settleDamages(func(o *store.Outcome) {
		slices.SortStableFunc(o.Header, func(a, b store.Header) int { return strings.Compare(a.Name, b.Name) })
	})},
	{"headers are kept as JSON text", "settle", settleDamages(func(o *store.Outcome) { eachValue(o, valid) })},
	{"blanks of headers are trimmed", "settle", settleDamages(func(o *store.Outcome) {
		eachValue(o, func(v string) string { return strings.Trim(v, "\"") })
	})},
	{"bodies are kept as text", "settle", settleDamages(func(o *store.Outcome) { o.Body = []byte(valid(string(o.Body))) })},
	{"bodies end at a zero byte", "settle", settleDamages(func(o *store.Outcome) {
		if i := slices.Index(o.Body, 0); i > 0 {
			o.Body = o.Body[:i]
		}
	})},
	{"bodies are cut at 64 KiB", "settle", settleDamages(func(o *store.Outcome) { o.Body = o.Body[:min(len(o.Body), 1<<16)] })},
	{"the codec is dropped", "settle", settleDamages(func(o *store.Outcome) { o.Codec = "" })},
	{"tombstones are forgotten", "settle", settleDamages(func(o *store.Outcome) { o.Gone = false })},
	{"codes are kept without a sign", "settle", settleDamages(func(o *store.Outcome) { o.Code = max(o.Code, -o.Code) })},
}
