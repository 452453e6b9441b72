package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// once runs some keys in one of the forms.
func (s *storm) once(r *rand.Rand, keys []string) {
	defer func() { _ = recover() }() // a handler's panic comes through
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if r.IntN(20) == 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, time.Duration(r.IntN(20))*time.Millisecond)
		defer leave()
	}
	c := call(keys[0])
	c.Wait = time.Duration(r.IntN(2)*r.IntN(500)) * time.Millisecond
	calls := poll(keys[:2+r.IntN(6)]...)
	switch form := r.IntN(8); form {
	case 0:
		res, err := s.g.Run(ctx, c, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			return s.leased(ctx, r, keys[0])
		})
		s.recordAnswer(keys[0], res, err)
	case 1, 2:
		res, err := s.a.Run(ctx, c, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			tx, _ := TxFrom(ctx)
			return s.work(ctx, tx, r, keys[0])
		})
		s.recordAnswer(keys[0], res, err)
	case 3, 4, 5:
		fn := func(ctx context.Context, newCalls []*PendingCall) (err error) {
			tx, _ := TxFrom(ctx)
			for _, f := range newCalls {
				if f.Outcome, err = s.work(ctx, tx, r, calls[f.Index].Key); err != nil {
					return err
				}
				if form == 5 { // a prefetched record has no outcome; with one the handler would run again
					f.Outcome = store.Outcome{}
				}
			}
			return nil
		}
		if form < 5 {
			s.recordResults(calls, s.a.RunBatch(ctx, calls, fn))
			return
		}
		q := s.a.Prefetcher()
		n := q.Prefetch(ctx, calls)
		s.recordResults(calls, n.Run(ctx, fn))
	case 6, 7:
		var res semel.Result
		var said error
		err := s.inTx(ctx, r, func(tx pgx.Tx) error {
			res, said = s.a.In(tx).Run(ctx, c, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				return s.work(ctx, tx, r, keys[0])
			})
			return nil
		})
		if err == nil {
			s.recordAnswer(keys[0], res, said)
		}
	}
}

var errBack = errors.New("rolled back")

// inTx is a transaction of the application's.
func (s *storm) inTx(ctx context.Context, r *rand.Rand, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.s.appPool, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if r.IntN(4) == 0 {
			return errBack
		}
		return nil
	})
}

func (s *storm) recordResults(calls []semel.Call, ends []BatchResult) {
	for i, e := range ends {
		s.recordAnswer(calls[i].Key, e.Result, e.Err)
	}
}

// recordAnswer records the answer to a caller.
func (s *storm) recordAnswer(key string, res semel.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers[key] == nil {
		s.answers[key] = map[string]int{}
	}
	f, is := errors.AsType[*semel.Failure](err)
	switch {
	case err == nil:
		s.answers[key]["done "+string(res.Outcome.Body)]++
	case is && f != nil && f.Code == "declined":
		s.answers[key]["declined "+f.Message]++
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, semel.ErrMismatch), errors.Is(err, semel.ErrInvalid):
		s.wrong = append(s.wrong, fmt.Sprintf("%s: %v", key, err))
	}
}
