package storetest

import (
	"bytes"
	"context"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// mutant is a store with one bug. The suite has to catch it in the topic that
// the bug belongs to.
type mutant struct {
	name  string
	topic string
	make  func(m *model) *hooks
}

// hooks are a model in which some methods are replaced.
type hooks struct {
	*model
	claim  func(ctx context.Context, p store.Proposal) (store.Found, error)
	swap   func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error)
	renew  func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error)
	settle func(ctx context.Context, l store.Lease, s store.Settlement) error
	get    func(ctx context.Context, k store.Key) (store.Found, error)
	sweep  func(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error)
	begin  func(x *modelTx) Tx
	list   func(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error]
	timers *timerFlaw // nil: the store keeps no timers
	hide   func()     // nil: no outcome can be hidden
	wait   func(ctx context.Context, seen store.Seen) error
}

// notifying are hooks that can notify.
type notifying struct{ *hooks }

func (n notifying) Wait(ctx context.Context, seen store.Seen) error { return n.wait(ctx, seen) }

// searched are hooks that can be searched.
type searched struct{ *hooks }

func (s searched) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return s.list(ctx, f)
}

func (h *hooks) Unwrap() store.Store { return h.model }

func (h *hooks) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if h.claim != nil {
		return h.claim(ctx, p)
	}
	return h.model.Claim(ctx, p)
}

func (h *hooks) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if h.swap != nil {
		return h.swap(ctx, seen, p)
	}
	return h.model.Swap(ctx, seen, p)
}

func (h *hooks) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if h.renew != nil {
		return h.renew(ctx, held, d)
	}
	return h.model.Renew(ctx, held, d)
}

func (h *hooks) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if h.settle != nil {
		return h.settle(ctx, l, s)
	}
	return h.model.Settle(ctx, l, s)
}

func (h *hooks) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if h.get != nil {
		return h.get(ctx, k)
	}
	return h.model.Get(ctx, k)
}

func (h *hooks) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if h.sweep != nil {
		return h.sweep(ctx, from, limit)
	}
	return h.model.Sweep(ctx, from, limit)
}

// row reads a row as it is.
func (m *model) row(k store.Key) (row, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.at.rows[k]
	return w, ok
}

// edit changes a row that is there.
func (m *model) edit(k store.Key, fn func(w *row)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w, ok := m.at.rows[k]; ok {
		fn(&w)
		m.at.rows[k] = w
	}
}

// found is the row of k, as a read gives it.
func (m *model) found(k store.Key, won bool) store.Found {
	f, _ := m.Get(context.Background(), k)
	f.Won = won
	return f
}

func mutantHarness(mu mutant) Harness {
	return Harness{
		Open: func(testing.TB) store.Store {
			c := new(atomic.Int64)
			c.Store(noon)
			h := mu.make(newModel(c.Load))
			if h.timers != nil {
				return manual{&timed{h, map[store.Key]store.Timer{}, *h.timers}, c}
			}
			if h.wait != nil {
				return manual{notifying{h}, c}
			}
			if h.list != nil {
				return manual{searched{h}, c}
			}
			return manual{h, c}
		},
		Advance: advance,
		Begin: func(_ testing.TB, s store.Store) Tx {
			h, _ := store.As[*hooks](s)
			x := h.model.begin()
			if h.begin != nil {
				return h.begin(x)
			}
			return x
		},
		Reopen: func(_ testing.TB, s store.Store) store.Store { return s },
		HideOutcomes: func(t testing.TB, s store.Store) {
			h, _ := store.As[*hooks](s)
			if h.hide == nil {
				t.Skip("the mutant hides no outcome")
			}
			h.hide()
		},
	}
}

func allMutants() (all []mutant) {
	for _, ms := range [][]mutant{claimMutants, swapMutants, settleMutants, renewMutants, timeMutants, sweepMutants, fieldMutants, keyMutants, listMutants, contextMutants, txMutants, journalMutants, formerOwnerMutants, timerMutants, eraseMutants, waitMutants} {
		all = append(all, ms...)
	}
	return all
}

const mutantEnv = "STORETEST_MUTANTS"

// TestMutant_Selected_FailsSuite runs in a child process, where it has to fail.
func TestMutant_Selected_FailsSuite(t *testing.T) {
	if os.Getenv(mutantEnv) == "" {
		t.Skip("TestCampaign_Mutants_EachCaught runs it")
	}
	for _, mu := range allMutants() {
		h := mutantHarness(mu)
		for _, topic := range topics {
			if topic.name == mu.topic {
				t.Run(mu.name, func(t *testing.T) { runChecks(t, &h, topic.checks) })
			}
		}
	}
}

func TestCampaign_Mutants_EachCaught(t *testing.T) {
	if raceEnabled && testing.Short() {
		t.Skip("long under the race detector")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestMutant_Selected_FailsSuite$", "-test.v", "-test.timeout=15m")
	cmd.Env = append(os.Environ(), mutantEnv+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err == nil {
		t.Errorf("the suite finds nothing wrong with any mutant")
	}
	caught := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^ +--- FAIL: TestMutant_Selected_FailsSuite/([^/\n]+)/([^/\n]+) \(`).FindAllStringSubmatch(out.String(), -1) {
		caught[line[1]] = append(caught[line[1]], strings.ReplaceAll(line[2], "_", " "))
	}
	if len(caught) == 0 {
		said := out.String()
		if _, why, is := strings.Cut(said, "panic: "); is { // such as that it hangs, and where
			said = why
		}
		t.Fatalf("the child process gave:\n%.20000s", said)
	}
	seen := map[string]bool{}
	for _, mu := range allMutants() {
		name := strings.ReplaceAll(mu.name, " ", "_")
		if seen[name] {
			t.Errorf("two mutants are called %q", mu.name)
		}
		seen[name] = true
		if by := caught[name]; by == nil {
			t.Errorf("%s: %q is not caught", mu.topic, mu.name)
		} else {
			t.Logf("%s: %q is caught by %q", mu.topic, mu.name, by)
		}
	}
}
