package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// loses drops a part of the proposal of a claim or a swap.
func loses(fn func(p *prop)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{
			model: m,
			claim: func(ctx ctxT, p prop) (store.Found, error) { fn(&p); return m.Claim(ctx, p) },
			swap:  func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) { fn(&p); return m.Swap(ctx, seen, p) },
		}
	}
}

var fieldMutants = []mutant{
	{"no policy is kept", "record", loses(func(p *prop) { p.Policy = store.Retry })},
	{"no holder is kept", "record", loses(func(p *prop) { p.Holder = "" })},
	{"the holder is cut", "record", loses(func(p *prop) { p.Holder = p.Holder[:min(len(p.Holder), 128)] })},
	{"the holder is folded", "record", loses(func(p *prop) { p.Holder = strings.ToLower(p.Holder) })},
	{"the attempt has 16 bits", "record", loses(func(p *prop) { p.Attempt = int(int16(p.Attempt)) })},
	{"the way of the fingerprint is not kept", "record", loses(func(p *prop) { p.Fingerprint.Alg = "" })},
	{"the secret of the fingerprint is not kept", "record", loses(func(p *prop) { p.Fingerprint.KeyID = "" })},
	{"the fingerprint is kept as text", "record", loses(func(p *prop) { p.Fingerprint.Sum = valid(p.Fingerprint.Sum) })},
	{"the fingerprint is padded", "record", loses(func(p *prop) {
		if n := len(p.Fingerprint.Sum); n < 16 {
			p.Fingerprint.Sum += strings.Repeat("\x00", 16-n)
		}
	})},
	{"the error is cut", "record", loses(func(p *prop) { p.Error = p.Error[:min(len(p.Error), 255)] })},
	{"lines of the error are joined", "record", loses(func(p *prop) { p.Error = strings.ReplaceAll(p.Error, "\n", " ") })},
	{"the format is not kept", "record", answers(func(_ *model, f *store.Found) { f.Record.Format = 0 })},
	{"Updated is not kept", "record", answers(func(_ *model, f *store.Found) { f.Record.Updated = f.Record.Created })},
	{"a read gives no outcome", "record", func(m *model) *hooks {
		return &hooks{model: m, get: func(ctx ctxT, k store.Key) (store.Found, error) {
			f, err := m.Get(ctx, k)
			f.Record.Outcome = store.Outcome{}
			return f, err
		}}
	}},
	{"reads come from a cache", "record", func(m *model) *hooks {
		cache := map[store.Key]store.Found{}
		var mu sync.Mutex
		return &hooks{model: m, get: func(ctx ctxT, k store.Key) (store.Found, error) {
			mu.Lock()
			defer mu.Unlock()
			if f, ok := cache[k]; ok {
				return f, nil
			}
			f, err := m.Get(ctx, k)
			if err == nil {
				cache[k] = f
			}
			return f, err
		}}
	}},
	{"an attempt of zero is none", "record", loses(func(p *prop) { p.Attempt = max(1, p.Attempt) })},
	{"a record whose outcome cannot be read is not shown", "record", hides(func(store.Found) (store.Found, error) { return store.Found{}, errHidden })},
	{"a record whose outcome cannot be read is absent", "record", hides(func(f store.Found) (store.Found, error) { return f, store.ErrNotFound })},
	{"an outcome that cannot be read is empty", "record", hides(func(f store.Found) (store.Found, error) { return f, nil })},
}

var errHidden = errors.New("the outcome cannot be read")

// hides answers with a record whose outcome is hidden as answer does.
func hides(answer func(f store.Found) (store.Found, error)) func(m *model) *hooks {
	return func(m *model) *hooks {
		hidden := false
		out := func(f store.Found, err error) (store.Found, error) {
			if err == nil && hidden && f.Record.State.Terminal() {
				f.Record.Outcome = store.Outcome{}
				return answer(f)
			}
			return f, err
		}
		return &hooks{
			model: m,
			claim: func(ctx ctxT, p prop) (store.Found, error) { return out(m.Claim(ctx, p)) },
			swap:  func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) { return out(m.Swap(ctx, seen, p)) },
			get:   func(ctx ctxT, k store.Key) (store.Found, error) { return out(m.Get(ctx, k)) },
			hide:  func() { hidden = true },
		}
	}
}

// folds keeps records under another key, and gives them out under the one that
// was asked for.
func folds(fold func(k store.Key) store.Key) func(m *model) *hooks {
	return func(m *model) *hooks {
		out := func(k store.Key, f store.Found, err error) (store.Found, error) {
			f.Record.Key = k
			return f, err
		}
		return &hooks{
			model: m,
			claim: func(ctx ctxT, p prop) (store.Found, error) {
				k := p.Key
				p.Key = fold(k)
				f, err := m.Claim(ctx, p)
				return out(k, f, err)
			},
			swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
				k := p.Key
				seen.Key, p.Key = fold(k), fold(k)
				f, err := m.Swap(ctx, seen, p)
				return out(k, f, err)
			},
			renew: func(ctx ctxT, held []lease, d time.Duration) ([]error, error) {
				folded := make([]lease, len(held))
				for i, l := range held {
					l.Key = fold(l.Key)
					folded[i] = l
				}
				return m.Renew(ctx, folded, d)
			},
			settle: func(ctx ctxT, l lease, s ending) error {
				l.Key = fold(l.Key)
				return m.Settle(ctx, l, s)
			},
			get: func(ctx ctxT, k store.Key) (store.Found, error) {
				f, err := m.Get(ctx, fold(k))
				return out(k, f, err)
			},
		}
	}
}

// eachField folds the fields alike.
func eachField(fn func(s string) string) func(k store.Key) store.Key {
	return func(k store.Key) store.Key {
		return store.Key{Operation: fn(k.Operation), Tenant: fn(k.Tenant), Value: fn(k.Value)}
	}
}

// joins keeps a key as one string.
func joins(sep string) func(k store.Key) store.Key {
	return func(k store.Key) store.Key {
		return store.Key{Value: k.Operation + sep + k.Tenant + sep + k.Value}
	}
}

var keyMutants = []mutant{
	{"the tenant is dropped", "keys", folds(func(k store.Key) store.Key { k.Tenant = ""; return k })},
	{"the operation is dropped", "keys", folds(func(k store.Key) store.Key { k.Operation = ""; return k })},
	{"no tenant is any tenant", "keys", folds(func(k store.Key) store.Key {
		if k.Tenant == "" {
			k.Tenant = "t1"
		}
		return k
	})},
	{"fields are joined by nothing", "keys", folds(joins(""))},
	{"fields are joined by a colon", "keys", folds(joins(":"))},
	{"fields are joined by a slash", "keys", folds(joins("/"))},
	{"fields are joined by a separator", "keys", folds(joins("\x1f"))},
	{"case does not matter", "keys", folds(eachField(strings.ToLower))},
	{"blanks at the end do not matter", "keys", folds(eachField(func(s string) string { return strings.TrimRight(s, " ") }))},
	{"blanks do not matter", "keys", folds(eachField(strings.TrimSpace))},
	{"accents do not matter", "keys", folds(eachField(func(s string) string { return strings.ReplaceAll(s, "e\u0301", "é") }))},
	{"marks do not matter", "keys", folds(eachField(func(s string) string { return strings.Trim(s, "\ufeff\u200b\u202e") }))},
	{"values are kept as text", "keys", folds(eachField(valid))},
	{"values end at a zero byte", "keys", folds(eachField(func(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s }))},
	{"values have 254 bytes", "keys", folds(eachField(func(s string) string { return s[:min(len(s), 254)] }))},
	{"values have 64 bytes", "keys", folds(eachField(func(s string) string { return s[:min(len(s), 64)] }))},
	{"numbers are compared as numbers", "keys", folds(eachField(func(s string) string {
		if s == "1e3" {
			return "1000"
		}
		return s
	}))},
	{"the key does not come back", "keys", answers(func(_ *model, f *store.Found) { f.Record.Key.Tenant = "" })},
	{"a lease is found by its owner", "keys", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		m.mu.Lock()
		for k, w := range m.at.rows {
			if w.owner == l.Owner && w.fence == l.Fence && w.state == store.Processing {
				l.Key = k
			}
		}
		m.mu.Unlock()
		return m.Settle(ctx, l, s)
	})},
}

var contextMutants = []mutant{
	{"a claim does not look at its context", "context", func(m *model) *hooks {
		return &hooks{model: m, claim: func(_ ctxT, p prop) (store.Found, error) { return m.Claim(context.Background(), p) }}
	}},
	{"a swap does not look at its context", "context", func(m *model) *hooks {
		return &hooks{model: m, swap: func(_ ctxT, seen store.Seen, p prop) (store.Found, error) {
			return m.Swap(context.Background(), seen, p)
		}}
	}},
	{"a renewal does not look at its context", "context", func(m *model) *hooks {
		return &hooks{model: m, renew: func(_ ctxT, held []lease, d time.Duration) ([]error, error) {
			return m.Renew(context.Background(), held, d)
		}}
	}},
	{"a settlement does not look at its context", "context", func(m *model) *hooks {
		return &hooks{model: m, settle: func(_ ctxT, l lease, s ending) error { return m.Settle(context.Background(), l, s) }}
	}},
	{"a sweep does not look at its context", "context", func(m *model) *hooks {
		return &hooks{model: m, sweep: func(_ ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
			return m.Sweep(context.Background(), from, limit)
		}}
	}},
	{"a read that failed finds nothing", "context", func(m *model) *hooks {
		return &hooks{model: m, get: func(ctx ctxT, k store.Key) (store.Found, error) {
			f, err := m.Get(ctx, k)
			if err != nil {
				err = store.ErrNotFound
			}
			return f, err
		}}
	}},
	{"a settlement that failed has lost its lease", "context", func(m *model) *hooks {
		return &hooks{model: m, settle: func(ctx ctxT, l lease, s ending) error {
			if err := m.Settle(ctx, l, s); err != nil {
				return store.ErrLeaseLost
			}
			return nil
		}}
	}},
	{"a read that failed wraps not found", "context", func(m *model) *hooks {
		return &hooks{model: m, get: func(ctx ctxT, k store.Key) (store.Found, error) {
			f, err := m.Get(ctx, k)
			if err != nil {
				err = errors.Join(store.ErrNotFound, err)
			}
			return f, err
		}}
	}},
	{"what is cancelled meanwhile is half done", "context", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			if err := ctx.Err(); err != nil {
				return store.Found{}, err
			}
			f, err := m.Claim(context.WithoutCancel(ctx), p)
			for range 50 {
				if ctx.Err() != nil {
					m.edit(p.Key, func(w *row) { w.holder = "" })
					return store.Found{}, ctx.Err()
				}
				yield()
			}
			return f, err
		}}
	}},
	{"applies and then looks at its context", "context", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(context.Background(), p)
			if err := ctx.Err(); err != nil {
				return store.Found{}, err
			}
			return f, err
		}}
	}},
}
