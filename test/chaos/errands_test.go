//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/semel-go/semel/test/internal/stores"
)

// errands is a script that has a worker run given keys, once each.
type errands struct {
	t      *testing.T // whose end sends the worker home
	in     chan string
	out    chan question
	worker *process
	ledger *ledger
}

func sendOut(t *testing.T, b stores.Backend, in stores.Instance, s spec) *errands {
	t.Helper()
	e := &errands{t: t, in: make(chan string), out: make(chan question), ledger: newLedger()}
	d := openDesk(t, e.ledger, e)
	s.Backend, s.URL, s.Desk = b.Name, in.URL, d.addr()
	e.worker = startWorker(t, s)
	return e
}

func (e *errands) next(*visitor) reply {
	select {
	case key := <-e.in:
		return reply{Key: key}
	case <-e.t.Context().Done():
		return reply{}
	}
}

func (e *errands) answered(_ *visitor, q question) {
	select {
	case e.out <- q:
	case <-e.t.Context().Done():
	}
}

func (*errands) reached(*visitor, point, string, uint64) bool { return false }

func (e *errands) left(v *visitor) {
	if v.key != "" {
		e.answered(v, question{Key: v.key, Class: unexpected, Text: "the worker is gone"})
	}
}

// run has each key run once, and returns what each came to.
func (e *errands) run(keys []string) map[string]question {
	e.t.Helper()
	go func() {
		for _, k := range keys {
			select {
			case e.in <- k:
			case <-e.t.Context().Done():
			}
		}
	}()
	got := map[string]question{}
	for range keys {
		select {
		case q := <-e.out:
			got[q.Key] = q
			if q.Class == unexpected {
				e.t.Fatalf("%s: %s", q.Key, q.Text)
			}
		case <-time.After(3 * time.Minute):
			e.t.Fatalf("%d of %d keys are done after three minutes", len(got), len(keys))
		}
	}
	return got
}

// until runs keys again until each has its answer.
func (e *errands) until(limit time.Duration, keys []string) {
	e.t.Helper()
	for end := time.Now().Add(limit); len(keys) > 0; {
		got := e.run(keys)
		keys = keys[:0:0]
		for k, q := range got {
			if q.Class != done {
				keys = append(keys, k)
			}
		}
		if len(keys) > 0 && time.Now().After(end) {
			e.t.Fatalf("%d keys have no answer after %v; such as %+v", len(keys), limit, got[keys[0]])
		}
	}
}
