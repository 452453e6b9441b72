package storm

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/test/internal/figure"
)

// flawed is a memory store with a bug that shows now and then.
type flawed struct {
	*memstore.Store
	claim  func(ctx context.Context, p store.Proposal) (store.Found, error)
	swap   func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error)
	settle func(ctx context.Context, l store.Lease, s store.Settlement) error
	get    func(ctx context.Context, k store.Key) (store.Found, error)
	sweep  func(ctx context.Context)
}

func (f *flawed) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if f.claim != nil {
		return f.claim(ctx, p)
	}
	return f.Store.Claim(ctx, p)
}

func (f *flawed) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if f.swap != nil {
		return f.swap(ctx, seen, p)
	}
	return f.Store.Swap(ctx, seen, p)
}

func (f *flawed) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if f.settle != nil {
		return f.settle(ctx, l, s)
	}
	return f.Store.Settle(ctx, l, s)
}

func (f *flawed) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if f.get != nil {
		return f.get(ctx, k)
	}
	return f.Store.Get(ctx, k)
}

func (f *flawed) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if f.sweep != nil {
		f.sweep(ctx)
	}
	return f.Store.Sweep(ctx, from, limit)
}

// change swaps the records in a state, whatever they are, for others.
func (f *flawed) change(ctx context.Context, from store.State, to store.Proposal) {
	for fd := range f.List(ctx, store.Filter{States: []store.State{from}}) {
		p := to
		p.Key, p.Policy, p.Fingerprint, p.Attempt = fd.Record.Key, fd.Record.Policy, fd.Record.Fingerprint, fd.Record.Attempt
		p.Owner[0] = byte(rand.IntN(256)) //nolint:gosec // it is a byte
		_, _ = f.Store.Swap(ctx, fd.Record.Seen(), p)
	}
}

func seldom() bool { return rand.IntN(8) == 0 }

// flaws are bugs of stores that the judge has to see.
var flaws = map[string]func(f *flawed){
	"a claim takes a key away from its holder": func(f *flawed) {
		f.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			fd, err := f.Store.Claim(ctx, p)
			if err == nil && !fd.Won && fd.Record.State == store.Processing {
				return f.Store.Swap(ctx, fd.Record.Seen(), p)
			}
			return fd, err
		}
	},
	"a claim begins what has ended anew": func(f *flawed) {
		f.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			fd, err := f.Store.Claim(ctx, p)
			if err == nil && fd.Record.State.Terminal() && seldom() {
				return f.Store.Swap(ctx, fd.Record.Seen(), p)
			}
			return fd, err
		}
	},
	"a swap compares nothing": func(f *flawed) {
		f.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			if fd, err := f.Store.Get(ctx, seen.Key); err == nil {
				seen = fd.Record.Seen()
			}
			return f.Store.Swap(ctx, seen, p)
		}
	},
	"two win one swap": func(f *flawed) {
		f.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			<-time.After(10 * time.Millisecond) // so that two callers often swap the same record
			fd, err := f.Store.Swap(ctx, seen, p)
			fd.Won = fd.Won || err == nil && fd.Record.State == p.State
			return fd, err
		}
	},
	"anybody settles a claim": func(f *flawed) {
		f.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			err := f.Store.Settle(ctx, l, s)
			if fd, gerr := f.Store.Get(ctx, l.Key); gerr == nil && errors.Is(err, store.ErrLeaseLost) {
				return f.Store.Settle(ctx, fd.Record.Lease(), s)
			}
			return err
		}
	},
	"a settlement that came too late is fine": func(f *flawed) {
		f.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if err := f.Store.Settle(ctx, l, s); !errors.Is(err, store.ErrLeaseLost) {
				return err
			}
			return nil
		}
	},
	"a settlement is acknowledged, and lost": func(f *flawed) {
		f.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if seldom() {
				return nil
			}
			return f.Store.Settle(ctx, l, s)
		}
	},
	"an outcome is kept in part": func(f *flawed) {
		f.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			s.Outcome.Body = s.Outcome.Body[:len(s.Outcome.Body)/2]
			return f.Store.Settle(ctx, l, s)
		}
	},
	"an attempt that failed is kept as done": func(f *flawed) {
		f.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if s.State == store.Released {
				s.State = store.Completed
			}
			return f.Store.Settle(ctx, l, s)
		}
	},
	"an outcome is read as it is not": func(f *flawed) {
		f.get = func(ctx context.Context, k store.Key) (store.Found, error) {
			fd, err := f.Store.Get(ctx, k)
			if seldom() {
				fd.Record.Outcome.Body = nil
			}
			return fd, err
		}
	},
	"a read that failed is no record": func(f *flawed) {
		f.get = func(ctx context.Context, k store.Key) (store.Found, error) {
			if seldom() {
				return store.Found{}, store.ErrNotFound
			}
			return f.Store.Get(ctx, k)
		}
	},
	"a read gives what was": func(f *flawed) {
		var mu sync.Mutex
		was := map[store.Key]store.Found{}
		f.get = func(ctx context.Context, k store.Key) (store.Found, error) {
			fd, err := f.Store.Get(ctx, k)
			mu.Lock()
			defer mu.Unlock()
			if old, ok := was[k]; ok && seldom() {
				return old, nil
			}
			if err == nil {
				was[k] = fd
			}
			return fd, err
		}
	},
	"a sweep removes what has not expired": func(f *flawed) {
		f.sweep = func(ctx context.Context) { f.change(ctx, store.Completed, store.Proposal{State: store.Released}) }
	},
	"a sweep removes what may run again": func(f *flawed) {
		f.sweep = func(ctx context.Context) { f.change(ctx, store.Released, store.Proposal{State: store.Released}) }
	},
	"a sweep lets run again what is not known": func(f *flawed) {
		f.sweep = func(ctx context.Context) {
			f.change(ctx, store.Unknown, store.Proposal{State: store.Released, Keep: time.Hour})
		}
	},
	"what is not known is said not to have happened": func(f *flawed) {
		f.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if s.State == store.Unknown {
				s.State, s.Keep = store.Released, time.Hour
			}
			return f.Store.Settle(ctx, l, s)
		}
	},
	"payloads are not kept": func(f *flawed) {
		f.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			fd, err := f.Store.Claim(ctx, p)
			fd.Record.Fingerprint = p.Fingerprint
			return fd, err
		}
	},
}

// Each flaw is seen in one of some storms.
func TestJudge_BrokenStore_Seen(t *testing.T) {
	var mu sync.Mutex
	caught := 0
	var all sync.WaitGroup
	room := make(chan struct{}, 4) // storms mostly wait
	for name, flaw := range flaws {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			wrong := untilWrong(t, func(*storm) {}, func(testing.TB) (processOpener, func()) {
				f := &flawed{Store: memstore.New(nil)}
				flaw(f)
				return direct(f, func() {})
			})
			mu.Lock()
			defer mu.Unlock()
			if wrong == nil {
				t.Errorf("%s: the judge has seen nothing", name)
				return
			}
			caught++
			t.Logf("%s: %.200s", name, wrong[0])
		})
	}
	all.Wait()
	figure.Report(t, figure.Figure{
		Claim: "a broken store is seen in a storm", Where: "storm", Trials: int64(len(flaws)), Failures: int64(caught), Control: true,
	})
}

// So are people and Guards that do not do what they should.
func TestJudge_BrokenRules_Seen(t *testing.T) {
	for name, breaks := range map[string]func(s *storm){
		"a reconciler says no when it is not sure": func(s *storm) { s.gullible = true },
		"Guards retry where Park is demanded":      func(s *storm) { s.rash = true },
	} {
		if wrong := untilWrong(t, breaks, openMemory); wrong == nil {
			t.Errorf("%s: the judge has seen nothing", name)
		} else {
			t.Logf("%s: %.200s", name, wrong[0])
		}
	}
}

// untilWrong has storms until the judge sees something.
func untilWrong(t *testing.T, breaks func(*storm), open opener) []string {
	for seed := range uint64(30) {
		s := newStorm(t, seed, open)
		s.hasty = true
		breaks(s)
		wrong := s.blow()
		if s.end(); len(wrong) > 0 {
			return wrong
		}
	}
	return nil
}
