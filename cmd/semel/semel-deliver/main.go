// Command semel-deliver takes messages from a broker and sends each once to a service in
// any language, as a POST. "semel deliver" starts it. See semel-deliver --help.
package main

import (
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/cli"
)

func main() {
	os.Exit(cli.Run(program.HandleSignals(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
