package storetest

import (
	"context"
	"slices"

	"github.com/semel-go/semel/store"
)

// journalFlaw is a bug in the model's journal.
type journalFlaw struct {
	noOwner, noFence, noState, noRead                        bool // a comparison is missing
	twice, overwrites, forgetsLast, sorts, cutsBody, noFails bool
	keepsOnRestart, keepsOnSweep, dropsOnSwap, dropsOnSettle bool
	shared, noContext, noTime, sameInTx                      bool
}

// recordStep adds a step, as the rules of store.Journal say.
func (b *book) recordStep(l store.Lease, s store.Step, now int64) error {
	f := b.flaw
	w, there := b.rows[l.Key]
	if !there || !f.noOwner && w.owner != l.Owner || !f.noFence && w.fence != l.Fence || !f.noState && w.state != store.Processing {
		return store.ErrLeaseLost
	}
	at := l.Key
	if f.shared {
		at.Operation, at.Tenant = "", ""
	}
	steps := slices.Clone(b.steps[at])
	for i := range steps {
		t := &steps[i]
		if t.Name != s.Name || f.twice {
			continue
		}
		if t.Failed == s.Failed && t.Fingerprint == s.Fingerprint && alike(t.Outcome, s.Outcome) {
			return nil
		}
		if !f.overwrites {
			return store.ErrChanged
		}
		steps = slices.Delete(steps, i, i+1)
		break
	}
	s.Recorded = when(now)
	if f.noTime {
		s.Recorded = when(0)
	}
	if f.cutsBody {
		s.Outcome.Body = s.Outcome.Body[:min(len(s.Outcome.Body), 255)]
	}
	if f.noFails {
		s.Failed = false
	}
	b.steps[at] = append(steps, s)
	return nil
}

func (b *book) stepsOf(l store.Lease) ([]store.Step, error) {
	w, there := b.rows[l.Key]
	if !there || !b.flaw.noRead && (w.owner != l.Owner || w.fence != l.Fence) {
		return nil, store.ErrLeaseLost
	}
	at := l.Key
	if b.flaw.shared {
		at.Operation, at.Tenant = "", ""
	}
	steps := slices.Clone(b.steps[at])
	if b.flaw.sorts {
		slices.SortFunc(steps, func(s, t store.Step) int { return len(s.Name) - len(t.Name) })
	}
	if b.flaw.forgetsLast && len(steps) > 100 {
		steps = steps[:100]
	}
	return steps, nil
}

func (m *model) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if m.at.flaw.noContext {
		ctx = context.Background()
	}
	return m.change(ctx, func(b *book, now int64) error { return b.recordStep(l, s, now) })
}

func (m *model) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.stepsOf(l)
}

func (x *modelTx) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if err := x.check(ctx); err != nil {
		return err
	}
	before := len(x.at.steps[l.Key])
	err := x.at.recordStep(l, s, x.now())
	if err == nil && len(x.at.steps[l.Key]) == before && !x.at.flaw.sameInTx {
		err = store.ErrStepRecorded
	}
	return err
}

func (x *modelTx) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	return x.at.stepsOf(l)
}

func flawed(f journalFlaw) func(m *model) *hooks {
	return func(m *model) *hooks {
		m.at.flaw = f
		return &hooks{model: m}
	}
}

var journalMutants = []mutant{
	{"a step of any owner is recorded", "journal", flawed(journalFlaw{noOwner: true})},
	{"a step of any fence is recorded", "journal", flawed(journalFlaw{noFence: true})},
	{"a step of a lost lease is recorded", "journal", flawed(journalFlaw{noOwner: true, noFence: true})},
	{"a step is recorded after its call has ended", "journal", flawed(journalFlaw{noState: true})},
	{"steps are read with any lease", "journal", flawed(journalFlaw{noRead: true})},
	{"a step that is sent again is recorded twice", "journal", flawed(journalFlaw{twice: true})},
	{"a step overwrites another of its name", "journal", flawed(journalFlaw{overwrites: true})},
	{"a transaction does not say that its step was recorded already", "journal", flawed(journalFlaw{sameInTx: true})},
	{"no more steps than a page", "journal", flawed(journalFlaw{forgetsLast: true})},
	{"steps come in another order", "journal", flawed(journalFlaw{sorts: true})},
	{"a step's result is cut", "journal", flawed(journalFlaw{cutsBody: true})},
	{"a failed step succeeds", "journal", flawed(journalFlaw{noFails: true})},
	{"steps outlive a restart of their record", "journal", flawed(journalFlaw{keepsOnRestart: true})},
	{"steps outlive the sweep of their record", "journal", flawed(journalFlaw{keepsOnSweep: true})},
	{"a takeover loses the steps", "journal", flawed(journalFlaw{dropsOnSwap: true})},
	{"a settlement loses the steps", "journal", flawed(journalFlaw{dropsOnSettle: true})},
	{"two scopes share the steps of a key", "journal", flawed(journalFlaw{shared: true})},
	{"a step is recorded although its context has ended", "journal", flawed(journalFlaw{noContext: true})},
	{"a step has no time", "journal", flawed(journalFlaw{noTime: true})},
}
