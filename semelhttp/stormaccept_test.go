package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// acceptWork sends the token to a worker, sometimes twice. If the work is done, it
// answers with the result.
func (s *storm) acceptWork(g *semel.Guard, w http.ResponseWriter, r *http.Request, t semel.Ticket) {
	payload, err := payloadOf(r)
	if err != nil {
		s.fail("accepted: %v", err)
	}
	if t.Result != nil {
		for _, h := range t.Result.Header {
			w.Header().Set(h.Name, h.Value)
		}
		w.WriteHeader(t.Result.Code)
		_, _ = w.Write(t.Result.Body)
		return
	}
	if !s.faultsOff.Load() && s.oneIn(8) {
		w.WriteHeader(http.StatusServiceUnavailable) // the queue is down
		return
	}
	for range 1 + s.randN(2) {
		d := time.Duration(s.randN(20)) * time.Millisecond
		s.background.Go(func() {
			<-time.After(d)
			s.runWork(g, t.Token, payload)
		})
	}
	w.WriteHeader(http.StatusAccepted)
}

var errWork = errors.New("the work failed")

// runWork redeems a token and runs its call.
func (s *storm) runWork(g *semel.Guard, token, payload string) {
	defer func() { _ = recover() }() // some behaviours panic
	call, err := g.Redeem(token)
	if err != nil {
		s.fail("a token: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the store may hang
	defer cancel()
	_, _ = g.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		run := s.recordRun(x, payload)
		switch run.behaviour {
		case "no effect", "unauthorised":
			return store.Outcome{}, semel.NoEffect(errWork)
		case "fails before", "panics before":
			return store.Outcome{}, errWork
		case "hangs", "slow":
			s.hang(ctx, "/accept")
		}
		s.recordEffect(run)
		switch run.behaviour {
		case "unavailable":
			return store.Outcome{}, errWork
		case "panics after":
			panic(errWork)
		}
		return store.Outcome{Code: 201, Body: []byte(run.body), Header: []store.Header{
			{Name: "Content-Type", Value: fmt.Sprintf("text/plain; run=%d", run.n)},
			{Name: "Etag", Value: fmt.Sprintf(`"%d"`, run.n)},
			{Name: "Location", Value: fmt.Sprint("/runs/", run.n)},
		}}, nil
	})
}
