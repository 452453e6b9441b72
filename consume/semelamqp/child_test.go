package semelamqp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/rpc"
	"os"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/store"
)

// childEnv holds a spec, and makes this binary a consumer that waits for its
// death.
const childEnv = "SEMEL_AMQP_CHILD"

// spec is what a child is told.
type spec struct {
	URL, Queue, Desk string
	Kind             semelamqp.Kind
	Single           bool
	Naive            bool // without deduplication
}

func (s *spec) options() *semelamqp.Options {
	return &semelamqp.Options{Declare: semelamqp.DeclareAll, Kind: s.Kind, SingleActive: s.Single, OrderKey: semelamqp.ByHeader(orderHeader)}
}

// runChild is the whole life of a child; false: this is none.
func runChild() bool {
	text := os.Getenv(childEnv)
	if text == "" {
		return false
	}
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.consume(context.Background())
	}
	fmt.Fprintln(os.Stderr, "child:", err) // it is to be killed
	os.Exit(1)
	return true
}

func (s *spec) consume(ctx context.Context) error {
	line, err := rpc.Dial("tcp", s.Desk)
	if err != nil {
		return err
	}
	st := remote{line}
	guard, err := semel.New(st, &semel.Options{Retention: consume.DefaultRetention, Lease: 2 * time.Second, SettleTimeout: time.Second})
	if err != nil {
		return err
	}
	keys := consume.Keyed("load", consume.FromHeader(consume.KeyHeader))
	if s.Naive {
		keys = consume.Keyed("load", consume.Unprotected())
	}
	c, err := consume.New(guard, keys, func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		id, err := strconv.Atoi(string(m.Body))
		if err != nil {
			return semel.Final(err)
		}
		if id%50 == 0 && x.Attempt() == 1 && !s.Naive {
			return errDead // goes back through the broker
		}
		_, err = st.ask(context.Background(), "Desk.Effect", Question{Effect: effect{ID: id, OrderKey: m.OrderKey, Derived: x.DownstreamKey("effect")}})
		return err
	}, &consume.Options{AllowShortRetention: true, MaxAttempts: -1, Backoff: func(int) time.Duration { return 250 * time.Millisecond }})
	if err != nil {
		return err
	}
	src, err := semelamqp.New(s.URL, s.Queue, s.options())
	if err != nil {
		return err
	}
	return c.Serve(ctx, src)
}

// remote is the store at the desk.
type remote struct{ line *rpc.Client }

func (r remote) ask(ctx context.Context, what string, q Question) (Answer, error) {
	var a Answer
	call := r.line.Go(what, q, &a, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		if call.Error != nil { // the test is gone, or will be
			return a, call.Error
		}
		return a, decode(a.Err)
	case <-ctx.Done():
		return Answer{}, ctx.Err() // a is the library's until it answers
	}
}

func (r remote) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	a, err := r.ask(ctx, "Desk.Claim", Question{Proposal: p})
	return a.Found, err
}

func (r remote) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	a, err := r.ask(ctx, "Desk.Swap", Question{Seen: seen, Proposal: p})
	return a.Found, err
}

func (r remote) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	a, err := r.ask(ctx, "Desk.Renew", Question{Held: held, For: d})
	var errs []error
	for _, text := range a.Errs {
		errs = append(errs, decode(text))
	}
	return errs, err
}

func (r remote) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	_, err := r.ask(ctx, "Desk.Settle", Question{Lease: l, Settlement: t})
	return err
}

func (r remote) Get(ctx context.Context, k store.Key) (store.Found, error) {
	a, err := r.ask(ctx, "Desk.Get", Question{Key: k})
	return a.Found, err
}

func (r remote) Sweep(context.Context, store.Cursor, int) (store.SweepResult, error) {
	return store.SweepResult{}, nil
}
