package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// HandleSignals returns a context that ends at the first SIGINT, SIGTERM or SIGHUP, so that
// the program drains. A second SIGINT or SIGTERM ends the process at once. A second SIGHUP
// does not, because a terminal that is closed can send several. A process that was started
// by nohup goes on ignoring SIGHUP.
//
// A write to a closed pipe returns an error, also on standard output and standard error.
func HandleSignals() context.Context {
	// Processes that this one starts do not inherit a handler, as they would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		<-hangups
		stop()
	}()
	return ctx
}
