package saga_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// refusing has one more timer, which cannot be read, and refuses changes of timers while
// refuses is set.
type refusing struct {
	*memstore.Store
	refuses atomic.Bool
	asked   atomic.Int64 // the limit of the last DueTimers
}

func (r *refusing) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	r.asked.Store(int64(limit))
	due, now, err := r.Store.DueTimers(ctx, operation, within, limit)
	return due, now, errors.Join(err, store.ErrCorrupt)
}

func (r *refusing) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if r.refuses.Load() {
		return false, errBoom
	}
	return r.Store.SetTimer(ctx, k, seen, next, wait)
}

// A worker forgets the sagas that were refused and are not due any more, also beside a timer
// that cannot be read.
func TestWork_TimerUnreadable_RefusedSagasAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, w := &refusing{Store: memstore.New(nil)}, &world{}
		const many = 50
		for i := range many {
			if _, err := st.SetTimer(t.Context(), saga.Key("order", "ann", fmt.Sprint(i)), store.Owner{}, store.Owner{1}, 0); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		s := newSaga(t, st, w.three())
		st.refuses.Store(true)
		go func() {
			defer close(ended)
			_ = s.Work(ctx, &saga.WorkOptions{Concurrency: 4})
		}()
		time.Sleep(time.Minute)
		for i := range many { // another worker has run them
			_ = st.DropTimer(t.Context(), saga.Key("order", "ann", fmt.Sprint(i)), store.Owner{1})
		}
		st.refuses.Store(false)
		time.Sleep(time.Minute)
		if n := st.asked.Load(); n != 4 {
			t.Errorf("the worker asks for %d timers, want 4: it remembers sagas that are not due any more", n)
		}
		stop()
		<-ended
	})
}
