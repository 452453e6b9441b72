package consume_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

// An Extend that ignores even its context is waited for by no other, and not by
// the end of Serve.
func TestServe_ExtendNeverReturns_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"))
		s.info.AckWait = 30 * time.Second
		var n atomic.Int64
		s.extend = func() error {
			if n.Add(1) == 1 {
				time.Sleep(24 * time.Hour)
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(65 * time.Second)
			return nil
		}, consume.Options{}), s)
		pass(70 * time.Second)
		if n.Load() != 7 {
			t.Errorf("extended %d times, want 6 for the one, and 1 for that which hangs", n.Load())
		}
		if took := r.end(); took > time.Minute || r.err != nil {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
		pass(25 * time.Hour)
	})
}

// A late Extend would replace the pause of a message that was given back. If the Nak has
// failed, the message is still here.
func TestNak_ExtendRunsOrIsDue_NakIsLast(t *testing.T) {
	for want, refused := range map[string]error{
		"extend 10s, extended 13s, nak 13s, answered 38s":                           nil,
		"extend 10s, extended 13s, nak 13s, answered 38s, extend 40s, extended 43s": errPlain,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var mu sync.Mutex
			var calls []string
			call := func(begins, ends string, took time.Duration, err error) func() error {
				say := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					calls = append(calls, fmt.Sprint(what, " ", time.Since(began)))
				}
				return func() error {
					say(begins)
					time.Sleep(took)
					say(ends)
					return err
				}
			}
			s := newSource(keyed("k"))
			s.info.AckWait = 30 * time.Second
			s.extend = call("extend", "extended", 3*time.Second, nil)
			s.nak = call("nak", "answered", 25*time.Second, refused)
			r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
				time.Sleep(11 * time.Second)
				return errPlain
			}, consume.Options{Backoff: func(int) time.Duration { return time.Minute }}), s)
			pass(45 * time.Second)
			mu.Lock()
			if got := strings.Join(calls, ", "); got != want {
				t.Errorf("a Nak that returns %v: the calls are %q, want %q", refused, got, want)
			}
			mu.Unlock()
			r.end()
		})
	}
}

// A message whose Extend hangs cannot be given back. It is redelivered after its AckWait.
func TestNak_ExtendNeverReturns_ServeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		s.info.AckWait = 30 * time.Second
		s.extend = func() error {
			time.Sleep(24 * time.Hour)
			return nil
		}
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(11 * time.Second)
			return errPlain
		}, consume.Options{Backoff: func(int) time.Duration { return time.Minute }, Observe: ev.observe}), s)
		pass(30 * time.Second)
		if took := r.end(); took > time.Minute || r.err != nil || s.count("nak k 0s") > 0 || ev.count(consume.EventSettleFailed) != 2 {
			t.Errorf("Serve ended after %v with %v; %d calls failed, want the two of Nak; told %v", took, r.err, ev.count(consume.EventSettleFailed), s.heard())
		}
		pass(25 * time.Hour)
	})
}
