package cli

import (
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/helper"
)

// deliverCmd starts the program semel-deliver, which reads the arguments.
type deliverCmd struct {
	Args []string `arg:"" optional:"" help:"The options of semel-deliver; see semel deliver --help."`
}

// deliverer is the program that semel deliver starts.
const deliverer = "semel-deliver"

func (c *deliverCmd) Run(e *env) error { return runDeliverer(e, c.Args) }

// publishCmd starts the program semel-deliver, too, because it has the clients of the
// brokers.
type publishCmd struct {
	Args []string `arg:"" optional:"" help:"The options of semel-deliver publish; see semel outbox publish --help."`
}

func (c *publishCmd) Run(e *env) error { return runDeliverer(e, c.Args, "publish") }

// runDeliverer starts the program with a command of it, if one is given, and arguments.
func runDeliverer(e *env, args []string, command ...string) error {
	path, err := helper.Find(deliverer)
	if err != nil {
		return err
	}
	if e.json {
		command = append(command, "--json")
	}
	args = append(command, args...)
	code, err := helper.Run(path, args)
	if err == nil && code != 0 {
		os.Exit(code)
	}
	return err
}
