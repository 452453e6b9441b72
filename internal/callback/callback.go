// Package callback calls functions of an application that advise, report or send a message. Such
// a function can panic. On a goroutine of Semel, the panic would end the process, and with it the
// work on all other calls and messages.
package callback

import (
	"context"
	"fmt"
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

// Do calls fn, and returns its error. If fn panics, the error says so, and the log has the stack.
// Both call fn by the name.
func Do(ctx context.Context, name string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log(ctx, name+" panicked", p)
			err = fmt.Errorf("%s panicked: %v", name, p)
		}
	}()
	return fn()
}

// Report is Do for a function that reports something to the application.
func Report(ctx context.Context, name string, fn func()) {
	_ = Do(ctx, name, func() error { fn(); return nil })
}

func log(ctx context.Context, text string, panicked any) {
	slog.ErrorContext(ctx, text, "panic", panicked, "stack", string(debug.Stack()))
}
