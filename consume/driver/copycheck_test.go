package driver_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

var errDrops = errors.New("the place drops copies")

// An operator changes a place after the start, and changes it back.
func TestCopyChecks_PlaceChangesLater_IsRefusedUntilItIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks driver.CopyChecks
		var answer error
		asked := 0
		check := func(after time.Duration, wantAsked int, want error) {
			t.Helper()
			time.Sleep(after)
			err := checks.Check(t.Context(), "letters", func(context.Context) error {
				asked++
				return answer
			})
			if !errors.Is(err, want) || asked != wantAsked {
				t.Errorf("Check: %v after %d questions, want %v after %d", err, asked, want, wantAsked)
			}
		}
		check(0, 1, nil)
		answer = errDrops
		check(driver.CopyCheckEach-time.Millisecond, 1, nil)
		check(time.Millisecond, 2, errDrops)
		answer = nil
		check(time.Second-time.Millisecond, 2, errDrops)
		check(time.Millisecond, 3, nil)
	})
}

func TestCopyChecks_ManyCopies_AskOncePerPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks driver.CopyChecks
		var all sync.WaitGroup
		asked := map[string]int{}
		var mu sync.Mutex
		for _, place := range []string{"letters", "quarantine"} {
			for range 10 {
				all.Go(func() {
					if err := checks.Check(t.Context(), place, func(context.Context) error {
						mu.Lock()
						asked[place]++
						mu.Unlock()
						time.Sleep(time.Second) // the broker is slow
						return nil
					}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if asked["letters"] != 1 || asked["quarantine"] != 1 {
			t.Errorf("questions: %v, want one for each place", asked)
		}
	})
}

// The broker does not answer the first caller in its time. The others wait no longer than
// their own, and the next one asks again.
func TestCopyChecks_NoAnswer_NextCallAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks driver.CopyChecks
		var all sync.WaitGroup
		for _, limit := range []time.Duration{10 * time.Second, 5 * time.Second} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				err := checks.Check(ctx, "letters", func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Check: %v", err)
				}
			})
		}
		all.Wait()
		if err := checks.Check(t.Context(), "letters", func(context.Context) error { return nil }); err != nil {
			t.Errorf("after an answer: %v", err)
		}
	})
}
