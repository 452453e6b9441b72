package consume

import "github.com/semel-go/semel"

// runnerAs unwraps run until it finds a T, like store.As.
func runnerAs[T any](run semel.Runner) (T, bool) {
	for run != nil {
		if t, ok := run.(T); ok {
			return t, true
		}
		w, ok := run.(interface{ Unwrap() semel.Runner })
		if !ok {
			break
		}
		run = w.Unwrap()
	}
	var zero T
	return zero, false
}
