// Command semel-deliver takes messages from a broker and sends each once to a service in
// any language, as a POST. "semel deliver" starts it. See semel-deliver --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
