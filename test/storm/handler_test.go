package storm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

var errHandler = errors.New("the handler says no")

// bank is where the effects are.
type bank struct {
	mu      sync.Mutex
	s       *storm
	effects map[string][]effect // by key
	barred  map[string]uint64   // effects up to this fence are refused
	// gullible: it refuses no effects.
	gullible bool
	payload  map[string]int
}

type effect struct {
	run    int64
	policy semel.Policy
	fence  uint64
}

func (b *bank) init(s *storm) {
	b.s, b.effects, b.barred, b.payload = s, map[string][]effect{}, map[string]uint64{}, map[string]int{}
}

// bankKey is what an effect is for.
func bankKey(x *semel.Execution) string {
	if _, step, is := strings.Cut(x.Operation(), "#"); is {
		return x.Key() + "#" + step
	}
	return x.Key()
}

// pay has the effect of a run. Under park there is one, and no other.
func (b *bank) pay(x *semel.Execution, run int64, payload int) error {
	key := bankKey(x)
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.Fence() <= b.barred[key] {
		return fmt.Errorf("a reconciler was told that it did not happen: %w", errHandler)
	}
	for _, e := range b.effects[key] {
		if e.policy == semel.Park || x.Policy() == semel.Park || strings.HasPrefix(key, "park-") {
			b.s.errorf("%s: run %d (%v, fence %d) had an effect, and so has run %d (%v, fence %d)", key, e.run, e.policy, e.fence, run, x.Policy(), x.Fence())
		}
	}
	b.effects[key] = append(b.effects[key], effect{run, x.Policy(), x.Fence()})
	if payload != 0 && !strings.HasPrefix(key, "brief-") {
		if old := b.payload[key]; old != 0 && old != payload {
			b.s.errorf("%s: it ran with the payloads %d and %d", key, old, payload)
		}
		b.payload[key] = payload
	}
	return nil
}

// bar says whether there is an effect, and that there will be none of runs up to
// a fence if not.
func (b *bank) bar(key string, fence uint64) (run int64, happened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gullible {
		return 0, false
	}
	if es := b.effects[key]; len(es) > 0 {
		return es[0].run, true
	}
	b.barred[key] = max(b.barred[key], fence)
	return 0, false
}

// handle is the handler. It has its effect, or not, and ends in one of all ways.
func (c *call) handle(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
	s := c.s
	if strings.HasSuffix(x.Operation(), "##rerun") {
		c.reread = true
		return store.Outcome{Body: []byte(`"fresh"`), Codec: "json"}, nil
	}
	run := s.runs.Add(1)
	done := outcome(run)
	pay := func() error { return s.pay(x, run, c.payload) }
	fate := c.r.IntN(20)
	if c.good {
		fate = 19
	}
	switch fate {
	case 0:
		return store.Outcome{}, errHandler
	case 1:
		return store.Outcome{}, semel.NoEffect(errHandler)
	case 2:
		return store.Outcome{}, &semel.Failure{Code: "declined", Message: fmt.Sprint("run ", run)}
	case 3:
		panic(thrown)
	case 4:
		<-ctx.Done()
		return store.Outcome{}, ctx.Err()
	case 5: // it does not listen
		<-time.After(lease * 5 / 2)
	case 6, 7:
		select {
		case <-time.After(2 * lease):
		case <-ctx.Done():
			return store.Outcome{}, ctx.Err()
		}
	case 8, 9:
		err := semel.Once(context.WithValue(ctx, eventsKey{}, &events{}), c.guard, x.Step("fee"), func(_ context.Context, x *semel.Execution) error {
			if s.oneIn(3) {
				return semel.NoEffect(errHandler)
			}
			return s.pay(x, s.runs.Add(1), 0)
		})
		if err != nil {
			if perr := pay(); perr != nil {
				return store.Outcome{}, perr
			}
			return store.Outcome{}, fmt.Errorf("a step: %w", err) // whatever that says of the step
		}
	}
	<-time.After(time.Duration(s.upTo(3000)) * time.Microsecond)
	if err := pay(); err != nil {
		return store.Outcome{}, err
	}
	switch fate {
	case 10, 11:
		return store.Outcome{}, errHandler
	case 12:
		panic(thrown)
	case 13:
		runtime.Goexit()
	case 14:
		return store.Outcome{}, errors.Join(semel.NoEffect(errHandler), errHandler)
	case 15: // too large to keep
		done.Body = fmt.Appendf(nil, `"run %d%300s"`, run, "")
	case 16, 17:
		if form(c.key) != "run" {
			break // their result differs from the outcome that they would complete with
		}
		if err := driver.Complete(ctx, x, done); err != nil {
			return store.Outcome{}, errors.Join(err, errHandler)
		}
		if s.oneIn(3) {
			panic(thrown)
		}
	case 18:
		<-time.After(lease)
	}
	return done, nil
}
