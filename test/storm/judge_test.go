package storm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// judge compares the records with the answers that callers got and with the
// effects of the handlers.
func (s *storm) judge(keys []string) {
	for _, key := range keys {
		if strings.HasPrefix(key, "brief-") {
			continue // it had many lives; the book has judged each answer
		}
		f, err := s.procs[0].st.Get(context.Background(), store.Key{Operation: string(operation), Tenant: "tenant", Value: key})
		if err != nil {
			s.errorf("%s: at the end: %v", key, err)
			continue
		}
		s.judgeKey(key, &f.Record)
	}
}

func (s *storm) judgeKey(key string, r *store.Record) {
	s.bank.mu.Lock()
	effects := s.effects[key]
	s.bank.mu.Unlock()
	s.amu.Lock()
	answers := slices.Sorted(maps.Keys(s.answers[key]))
	s.amu.Unlock()
	if !r.State.Terminal() {
		s.errorf("%s: it is %v at the end", key, r.State)
		return
	}
	parked := slices.ContainsFunc(effects, func(e effect) bool { return e.policy == store.Park })
	if r.State == store.Failed {
		if parked {
			s.errorf("%s: it has the effects %v, and failed: %s", key, effects, r.LastError)
		}
		for _, a := range answers {
			if !strings.HasPrefix(a, "failed ") || !strings.HasSuffix(a, r.LastError) {
				s.errorf("%s: it failed with %q, and a caller was told %q", key, r.LastError, a)
			}
		}
		return
	}
	// The effect whose run is recorded, found by its outcome or by its fence.
	by := slices.IndexFunc(effects, func(e effect) bool {
		if len(r.Outcome.Body) > 0 {
			return string(outcome(e.run).Body) == string(r.Outcome.Body)
		}
		return e.fence == r.Fence
	})
	if by < 0 {
		s.errorf("%s: it is recorded as done (%q, fence %d), and its effects are %v", key, r.Outcome.Body, r.Fence, effects)
		return
	}
	right := []string{"done " + string(outcome(effects[by].run).Body)}
	switch {
	case form(key) == "once":
		right = []string{"done "}
	case r.Outcome.Gone: // the first caller has it
		right = []string{fmt.Sprintf(`done "run %d%300s"`, effects[by].run, ""), "gone"}
	}
	for _, a := range answers {
		if !slices.Contains(right, a) {
			s.errorf("%s: a caller was told %q, and it is recorded as %q, of the effects %v", key, a, right, effects)
		}
	}
}

// left wants none of Semel's goroutines to be left.
func (s *storm) left() {
	var stacks string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "semel.(*Guard)") && !strings.Contains(stacks, "semel.(*keeper)") && !strings.Contains(stacks, "shardstore.(*Store)") {
			return
		}
	}
	s.errorf("goroutines are left behind: %v", errors.New(stacks))
}
