// Package callback calls functions of an application that only advise or report. Such a
// function can panic. On a goroutine of Semel, the panic would end the process, and with it the
// work on all other calls and messages.
package callback

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

// DefaultBackoff is the pause after failed attempt n: 1 s, 2 s, 4 s and so on, at most 1 min.
func DefaultBackoff(n int) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 6), time.Minute)
}

// Backoff makes the function of an option Backoff return no negative pause. If the option
// panics, DefaultBackoff takes its place. pkg names the package in the log.
func Backoff(pkg string, option func(n int) time.Duration) func(n int) time.Duration {
	return func(n int) (d time.Duration) {
		defer func() {
			if p := recover(); p != nil {
				log(context.Background(), pkg+": Backoff panicked; the pause is the default one", p)
				d = DefaultBackoff(n)
			}
		}()
		return max(0, option(n))
	}
}

// Report calls fn, which reports something to the application. what names fn in the log.
func Report(ctx context.Context, what string, fn func()) {
	defer func() {
		if p := recover(); p != nil {
			log(ctx, what+" panicked", p)
		}
	}()
	fn()
}

func log(ctx context.Context, text string, panicked any) {
	slog.ErrorContext(ctx, text, "panic", panicked, "stack", string(debug.Stack()))
}
