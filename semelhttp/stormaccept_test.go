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

// accept hands the token to a worker, sometimes twice, and answers with the
// result when there is one.
func (s *storm) accept(g *semel.Guard, w http.ResponseWriter, r *http.Request, t semel.Ticket) {
	payload, err := payloadOf(r)
	if err != nil {
		s.bad("accepted: %v", err)
	}
	if t.Result != nil {
		for _, h := range t.Result.Header {
			w.Header().Set(h.Name, h.Value)
		}
		w.WriteHeader(t.Result.Code)
		_, _ = w.Write(t.Result.Body)
		return
	}
	if !s.calm.Load() && s.oneIn(8) {
		w.WriteHeader(http.StatusServiceUnavailable) // the queue is down
		return
	}
	for range 1 + s.upTo(2) {
		d := time.Duration(s.upTo(20)) * time.Millisecond
		s.left.Go(func() {
			<-time.After(d)
			s.work(g, t.Token, payload)
		})
	}
	w.WriteHeader(http.StatusAccepted)
}

var errWork = errors.New("the work failed")

// work is what is done with a token.
func (s *storm) work(g *semel.Guard, token, payload string) {
	defer func() { _ = recover() }() // fates panic
	call, err := g.Redeem(token)
	if err != nil {
		s.bad("a token: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the store may hang
	defer cancel()
	_, _ = g.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		run := s.begin(x, payload)
		switch run.fate {
		case "no effect", "unauthorised":
			return store.Outcome{}, semel.NoEffect(errWork)
		case "fails before", "panics before":
			return store.Outcome{}, errWork
		case "hangs", "slow":
			s.hang(ctx, "/accept")
		}
		s.effect(run)
		switch run.fate {
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
