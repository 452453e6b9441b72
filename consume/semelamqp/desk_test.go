package semelamqp_test

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// desk is what outlives the consumers that are killed: the store, and the world
// outside in which handlers have their effects. Consumers call it by net/rpc.
type desk struct {
	st   store.Store
	addr string

	mu      sync.Mutex
	runs    map[int]int         // effects, by the message
	derived map[string]struct{} // the keys that were passed on
	last    map[string]int      // the last message of an order key that took effect for the first time
	wrong   int                 // of those, the ones that overtook
}

// effect is what a handler does to the world outside.
type effect struct {
	ID                int
	OrderKey, Derived string
}

func openDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{st: memstore.New(nil), runs: map[int]int{}, derived: map[string]struct{}{}, last: map[string]int{}}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.addr = l.Addr().String()
	s := rpc.NewServer()
	if err := s.RegisterName("Desk", &service{d}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return d
}

func (d *desk) effect(e effect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[e.ID]++
	d.derived[e.Derived] = struct{}{}
	if e.OrderKey != "" && d.runs[e.ID] == 1 {
		if last, some := d.last[e.OrderKey]; some && last > e.ID {
			d.wrong++
		}
		d.last[e.OrderKey] = e.ID
	}
}

func (d *desk) done() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.runs)
}

// counts are the messages that never took effect, and the effects beyond the
// first.
func (d *desk) counts(n int) (lost, again int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range n {
		if d.runs[i] == 0 {
			lost++
			continue
		}
		again += d.runs[i] - 1
	}
	return lost, again
}

// Question and Answer are what goes over the wire.
type Question struct {
	Seen       store.Seen
	Proposal   store.Proposal
	Lease      store.Lease
	Settlement store.Settlement
	Held       []store.Lease
	For        time.Duration
	Key        store.Key
	Effect     effect
}

type Answer struct {
	Found store.Found
	Errs  []string
	Err   string
}

// service is what net/rpc calls.
type service struct{ d *desk }

func (s *service) Claim(q Question, a *Answer) (err error) {
	a.Found, err = s.d.st.Claim(context.Background(), q.Proposal)
	a.Err = encode(err)
	return nil
}

func (s *service) Swap(q Question, a *Answer) (err error) {
	a.Found, err = s.d.st.Swap(context.Background(), q.Seen, q.Proposal)
	a.Err = encode(err)
	return nil
}

func (s *service) Settle(q Question, a *Answer) error {
	a.Err = encode(s.d.st.Settle(context.Background(), q.Lease, q.Settlement))
	return nil
}

func (s *service) Renew(q Question, a *Answer) error {
	errs, err := s.d.st.Renew(context.Background(), q.Held, q.For)
	for _, e := range errs {
		a.Errs = append(a.Errs, encode(e))
	}
	a.Err = encode(err)
	return nil
}

func (s *service) Get(q Question, a *Answer) (err error) {
	a.Found, err = s.d.st.Get(context.Background(), q.Key)
	a.Err = encode(err)
	return nil
}

func (s *service) Effect(q Question, _ *Answer) error {
	s.d.effect(q.Effect)
	return nil
}

// The store's own errors keep their identity over the wire.
var ownErrors = map[string]error{"not found": store.ErrNotFound, "lease lost": store.ErrLeaseLost, "too large": store.ErrTooLarge, "corrupt": store.ErrCorrupt}

func encode(err error) string {
	if err == nil {
		return ""
	}
	for name, own := range ownErrors {
		if errors.Is(err, own) {
			return name
		}
	}
	return err.Error()
}

func decode(text string) error {
	if text == "" {
		return nil
	}
	if own, ok := ownErrors[text]; ok {
		return own
	}
	return errors.New(text)
}
