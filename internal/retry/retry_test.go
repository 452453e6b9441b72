package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

func TestDo_StoreFails_RepeatsUntilAnswered(t *testing.T) {
	outage := errors.New("connection refused")
	for name, c := range map[string]struct {
		errs  []error // of the first requests; later ones succeed
		calls int
		want  error
	}{
		"answered at once":        {nil, 1, nil},
		"two outages":             {[]error{outage, outage}, 3, nil},
		"no answer":               {[]error{outage, outage, outage, outage}, 4, outage},
		"the record is absent":    {[]error{store.ErrNotFound}, 1, store.ErrNotFound},
		"an outage, then corrupt": {[]error{outage, store.ErrCorrupt}, 2, store.ErrCorrupt},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			_, err := retry.Do(t.Context(), func() (store.Found, error) {
				if calls++; calls <= len(c.errs) {
					return store.Found{}, c.errs[calls-1]
				}
				return store.Found{Won: true}, nil
			})
			if calls != c.calls || !errors.Is(err, c.want) {
				t.Errorf("%s: %d requests, error %v; want %d, %v", name, calls, err, c.calls, c.want)
			}
		})
	}
}

func TestAsk_StoreDoesNotAnswer_EndsWithLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		err := retry.Ask(t.Context(), time.Second, func(ctx context.Context) error {
			calls++
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(start); took != time.Second || calls != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v and %d requests: %v; want the end of the limit, 1 s", took, calls, err)
		}
	})
}

func TestPause_AnyDuration_IsRandomAroundIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			start := time.Now()
			ended := retry.Pause(t.Context(), time.Second)
			if took := time.Since(start); !ended || took < time.Second/2 || took > 3*time.Second/2 {
				t.Errorf("a pause of 1 s took %v, ended by itself: %v", took, ended)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if retry.Pause(ctx, math.MaxInt64) || time.Since(start) != time.Hour {
			t.Errorf("the longest pause ended by itself, or not with its context: after %v", time.Since(start))
		}
	})
}
