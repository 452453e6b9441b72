package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// contender is one way to carry out a call once. Its functions are safe for
// concurrent use.
type contender struct {
	name string
	// do makes a call with a key. It fails if the handler runs although the call is
	// not new, or does not run although it is.
	do func(ctx context.Context, key string, isNew bool) error
	// batch replaces do for a program that makes new calls itself, for about the time d.
	// It does not tell the latency of each call.
	batch func(ctx context.Context, callers int, d time.Duration) (calls int, elapsed time.Duration, err error)
	// server is the processor time of the servers so far; nil: there are none.
	server func() time.Duration
}

// The kinds of calls.
const (
	newCalls = "new calls"
	replays  = "replays"
)

// sample is what one contender did in one round.
type sample struct{ rate, p50, p99, client, server float64 }

// compare has contenders make calls in turns, and returns a figure of each. Every
// second round is in reverse. The ratio of a contender is its rate divided by the
// first contender's in the same round.
func (l *lab) compare(ctx context.Context, group, kind string, callers int, cs []contender) ([]Figure, error) {
	keys, err := l.completed(ctx, kind, cs)
	if err != nil {
		return nil, err
	}
	samples := make([][]sample, len(cs))
	for round := range l.opt.rounds + 1 {
		l.quiet(ctx)
		for i := range cs {
			if round%2 == 1 {
				i = len(cs) - 1 - i
			}
			s, err := l.sample(ctx, &cs[i], callers, keys[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %s with %d callers: %w", group, cs[i].name, kind, callers, err)
			}
			if round > 0 { // before that, connections are opened and statements prepared
				samples[i] = append(samples[i], s)
			}
		}
	}
	figures := make([]Figure, len(cs))
	for i := range cs {
		f := Figure{Group: group, Name: cs[i].name, Kind: kind, N: callers, Values: map[string]Stat{}}
		for name, value := range map[string]func(s, first *sample) float64{
			"rate": func(s, _ *sample) float64 { return s.rate }, "ratio": func(s, first *sample) float64 { return s.rate / first.rate },
			"p50": func(s, _ *sample) float64 { return s.p50 }, "p99": func(s, _ *sample) float64 { return s.p99 },
			"client": func(s, _ *sample) float64 { return s.client }, "server": func(s, _ *sample) float64 { return s.server },
		} {
			var all []float64
			for round := range samples[i] {
				all = append(all, value(&samples[i][round], &samples[0][round]))
			}
			if own := cs[i].batch == nil; own || name == "rate" || name == "ratio" || name == "server" {
				f.Values[name] = quartiles(all)
			}
		}
		figures[i] = f
		l.say("  %-28s %-10s %3d callers  %-34s %9.0f/s  %5.2f  p99 %.2f ms", group, kind, callers, f.Name, f.Values["rate"].Median(), f.Values["ratio"].Median(), f.Values["p99"].Median())
	}
	return figures, nil
}

// completed makes keys of completed calls for each contender, if the kind is replays.
func (l *lab) completed(ctx context.Context, kind string, cs []contender) ([][]string, error) {
	keys := make([][]string, len(cs))
	for i := range cs {
		if kind != replays {
			continue
		}
		keys[i] = make([]string, l.opt.pool)
		for n := range keys[i] {
			keys[i][n] = newKey()
		}
		if err := each(ctx, 16, keys[i], func(key string) error { return cs[i].do(ctx, key, true) }); err != nil {
			return nil, fmt.Errorf("%s: %w", cs[i].name, err)
		}
	}
	return keys, nil
}

// sample runs one contender for one round. Without keys, the calls are new.
func (l *lab) sample(ctx context.Context, c *contender, callers int, keys []string) (sample, error) {
	server := func() time.Duration { return 0 }
	if c.server != nil {
		server = c.server
	}
	serverBefore, clientBefore, began := server(), ownTime(), time.Now()
	var calls int
	var took []time.Duration
	var elapsed time.Duration
	var err error
	if c.batch != nil {
		calls, elapsed, err = c.batch(ctx, callers, l.opt.each)
	} else {
		took, err = loop(ctx, callers, keys, c.do, func() bool { return time.Since(began) >= l.opt.each })
		calls, elapsed = len(took), time.Since(began)
	}
	client := ownTime() - clientBefore
	if err == nil && calls == 0 {
		err = errors.New("no call was made")
	}
	if err != nil {
		return sample{}, err
	}
	s := sample{
		rate: float64(calls) / elapsed.Seconds(), client: micros(client) / float64(calls), server: micros(server()-serverBefore) / float64(calls),
	}
	if slices.Sort(took); len(took) > 0 {
		s.p50, s.p99 = micros(took[len(took)/2])/1000, micros(took[len(took)*99/100])/1000
	}
	return s, nil
}

// loop has each caller make calls until over, and at least one, and returns how long
// each call took. Without keys, the calls are new.
func loop(ctx context.Context, callers int, keys []string, do func(ctx context.Context, key string, isNew bool) error, over func() bool) ([]time.Duration, error) {
	took, errs := make([][]time.Duration, callers), make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for n := c * 7919; len(took[c]) == 0 || errs[c] == nil && !over(); n++ {
				var key string
				if keys == nil {
					key = newKey()
				} else {
					key = keys[n%len(keys)]
				}
				began := time.Now()
				errs[c] = do(ctx, key, keys == nil)
				took[c] = append(took[c], time.Since(began))
			}
		})
	}
	all.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}

// each calls do for all keys, from several goroutines.
func each(ctx context.Context, goroutines int, keys []string, do func(key string) error) error {
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for n := g; n < len(keys) && errs[g] == nil && ctx.Err() == nil; n += goroutines {
				errs[g] = do(keys[n])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// newKey is a random UUID, as most clients send.
func newKey() string {
	var u [16]byte
	binary.NativeEndian.PutUint64(u[:], rand.Uint64())
	binary.NativeEndian.PutUint64(u[8:], rand.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
