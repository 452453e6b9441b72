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

func (c *deliverCmd) Run(e *env) error {
	path, err := helper.Find(deliverer)
	if err != nil {
		return err
	}
	args := c.Args
	if e.json {
		args = append([]string{"--json"}, args...)
	}
	code, err := helper.Run(path, args)
	if err == nil && code != 0 {
		os.Exit(code)
	}
	return err
}
