package storetest

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// txHooks are a transaction in which some methods are replaced.
type txHooks struct {
	*modelTx
	claim    func(ctx ctxT, p prop) (store.Found, error)
	settle   func(ctx ctxT, l lease, s ending) error
	nested   func(ctx ctxT, fn func() error) error
	commit   func(ctx ctxT) error
	rollback func(ctx ctxT) error
}

func (h *txHooks) Claim(ctx ctxT, p prop) (store.Found, error) {
	if h.claim != nil {
		return h.claim(ctx, p)
	}
	return h.modelTx.Claim(ctx, p)
}

func (h *txHooks) Settle(ctx ctxT, l lease, s ending) error {
	if h.settle != nil {
		return h.settle(ctx, l, s)
	}
	return h.modelTx.Settle(ctx, l, s)
}

func (h *txHooks) Nested(ctx ctxT, fn func() error) error {
	if h.nested != nil {
		return h.nested(ctx, fn)
	}
	return h.modelTx.Nested(ctx, fn)
}

func (h *txHooks) Commit(ctx ctxT) error {
	if h.commit != nil {
		return h.commit(ctx)
	}
	return h.modelTx.Commit(ctx)
}

func (h *txHooks) Rollback(ctx ctxT) error {
	if h.rollback != nil {
		return h.rollback(ctx)
	}
	return h.modelTx.Rollback(ctx)
}

func inTx(fn func(x *modelTx) Tx) func(m *model) *hooks {
	return func(m *model) *hooks { return &hooks{model: m, begin: fn} }
}

// publish makes what x wrote so far visible to all.
func publish(x *modelTx, book, effects bool) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	if book {
		x.m.at = x.at.copy()
	}
	if effects {
		x.m.effects = x.effects
	}
}

var txMutants = []mutant{
	{"claims outlive a rollback", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := x.Claim(ctx, p)
			publish(x, true, false)
			return f, err
		}}
	})},
	{"effects outlive a rollback", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, rollback: func(ctx ctxT) error {
			if !x.over {
				publish(x, false, true)
			}
			return x.Rollback(ctx)
		}}
	})},
	{"a commit keeps the effect and forgets the record", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, commit: func(ctx ctxT) error { publish(x, false, true); return x.Rollback(ctx) }}
	})},
	{"a commit keeps the record and forgets the effect", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, commit: func(ctx ctxT) error { publish(x, true, false); return x.Rollback(ctx) }}
	})},
	{"effects are seen before the commit", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, settle: func(ctx ctxT, l lease, s ending) error {
			err := x.Settle(ctx, l, s)
			publish(x, false, true)
			return err
		}}
	})},
	{"nested undoes nothing", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(_ ctxT, fn func() error) error { return fn() }}
	})},
	{"nested undoes the record and keeps the effect", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			var kept []string
			err := x.Nested(ctx, func() error { err := fn(); kept = x.effects; return err })
			x.effects = kept
			return err
		}}
	})},
	{"nested undoes what succeeds", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			var failed error
			_ = x.Nested(ctx, func() error { failed = fn(); return errOver })
			return failed
		}}
	})},
	{"nested ends the transaction", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			err := x.Nested(ctx, fn)
			if err != nil {
				_ = x.Rollback(ctx)
			}
			return err
		}}
	})},
	{"nested undoes the whole transaction", "tx", inTx(func(x *modelTx) Tx {
		at := x.at.copy()
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			err := x.Nested(ctx, fn)
			if err != nil {
				x.at, x.effects = at.copy(), nil
			}
			return err
		}}
	})},
	{"nested swallows the error", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error { _ = x.Nested(ctx, fn); return nil }}
	})},
	{"nested hides the error", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			if err := x.Nested(ctx, fn); err != nil {
				return errors.New(err.Error())
			}
			return nil
		}}
	})},
	{"nested wraps the error", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			if err := x.Nested(ctx, fn); err != nil {
				return fmt.Errorf("rollback to savepoint: %w", err)
			}
			return nil
		}}
	})},
	{"nested keeps what panics", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) error {
			var caught any
			err := x.Nested(ctx, func() error {
				defer func() { caught = recover() }()
				return fn()
			})
			if caught != nil {
				panic(caught)
			}
			return err
		}}
	})},
	{"nested swallows the panic", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, nested: func(ctx ctxT, fn func() error) (err error) {
			defer func() { _ = recover() }()
			return x.Nested(ctx, fn)
		}}
	})},
	{"a duplicate in the transaction is won", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, claim: func(ctx ctxT, p prop) (store.Found, error) {
			if _, committed := x.m.row(p.Key); !committed {
				delete(x.at.rows, p.Key)
			}
			return x.Claim(ctx, p)
		}}
	})},
	{"transactions do not see each other", "tx", inTx(func(x *modelTx) Tx {
		x.m.writing.Unlock() // a snapshot, and the last to commit wins
		yield()
		before := len(x.effects)
		return &txHooks{
			modelTx: x,
			commit: func(ctx ctxT) error {
				if x.over {
					return errOver
				}
				x.over = true
				x.m.mu.Lock()
				defer x.m.mu.Unlock()
				for k, w := range x.at.rows {
					x.m.at.rows[k] = w
				}
				x.m.effects = append(x.m.effects, x.effects[before:]...)
				return nil
			},
			rollback: func(ctxT) error { x.over = true; return nil },
		}
	})},
	{"a settlement in a transaction compares nothing", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, settle: func(ctx ctxT, l lease, s ending) error {
			w := x.at.rows[l.Key]
			l.Owner, l.Fence = w.owner, w.fence
			return x.Settle(ctx, l, s)
		}}
	})},
	{"a lost claim ends the transaction", "tx", inTx(func(x *modelTx) Tx {
		return &txHooks{modelTx: x, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := x.Claim(ctx, p)
			if !f.Won {
				_ = x.Rollback(ctx)
			}
			return f, err
		}}
	})},
}
