// Command semel makes HTTP requests take effect once: it is a proxy in front of
// a service in any language, with tools for the people who operate it. See
// semel --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel/cmd/semel/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
