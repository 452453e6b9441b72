package verify

import (
	"context"
	"errors"
	"sync"
)

// pack runs n functions at once, waits for all, and joins their errors.
func pack(n int, fn func(i int) error) error {
	var wg sync.WaitGroup
	gate, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = fn(i)
		})
	}
	close(gate)
	wg.Wait()
	return first(errs)
}

// each runs fn for 0 to n-1, at most wide calls at the same time. It serves work
// that is no race, but is faster in parallel.
func each(ctx context.Context, n, wide int, fn func(i int) error) error {
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	err := pack(min(n, wide), func(int) error {
		var errs []error
		for i := range next {
			errs = append(errs, fn(i))
		}
		return first(errs)
	})
	return errors.Join(ctx.Err(), err)
}

// first returns the first error, because a store that is down gives the same error
// to all calls.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
