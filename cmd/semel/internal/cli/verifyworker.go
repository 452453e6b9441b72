package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/verify"
)

type verifyWorkerCmd struct {
	Store    string `name:"store" required:"" env:"SEMEL_VERIFY_STORE" help:"The store."`
	Tenant   string `name:"tenant" required:"" help:"The run."`
	Parallel int    `name:"parallel" default:"8" help:"Callers."`
}

func (c *verifyWorkerCmd) Run(ctx context.Context, e *env) (err error) {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return verify.Work(ctx, h, c.Tenant, c.Parallel, e.stdin, e.stdout)
}

// starter returns a function that starts this program as a worker on the store. A
// worker ends at the end of its standard input, and so with this process.
func starter(u storeurl.URL, parallel int) func(context.Context, string) (*verify.Worker, error) {
	return func(ctx context.Context, tenant string) (*verify.Worker, error) {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("where this program is: %w", err)
		}
		cmd := exec.CommandContext(ctx, path, "verify-worker", "--tenant="+tenant, "--parallel="+strconv.Itoa(parallel))
		cmd.Env = append(os.Environ(), "SEMEL_VERIFY_STORE="+u.Secret()) // other users can see the arguments
		var said bytes.Buffer
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return &verify.Worker{In: in, Out: out, Wait: func() error {
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
			}
			return nil
		}}, nil
	}
}
