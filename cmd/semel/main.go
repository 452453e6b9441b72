// Command semel makes HTTP requests take effect once: it is a proxy in front of
// a service in any language, with tools for the people who operate it. See
// semel --help.
package main

import (
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/cli"
	"github.com/semel-go/semel/cmd/semel/internal/program"
)

func main() {
	os.Exit(cli.Run(program.HandleSignals(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
