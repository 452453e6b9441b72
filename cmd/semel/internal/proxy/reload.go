package proxy

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
)

// reloadEvery is the pause between two looks at the file of secrets.
const reloadEvery = 5 * time.Second

// currentGuard is a semel.Runner whose Guard can be replaced. A call ends with the
// Guard with which it began.
type currentGuard struct {
	guard atomic.Pointer[semel.Guard]
	build func([]semel.Secret) (*semel.Guard, error)
}

// Run implements semel.Runner.
func (c *currentGuard) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return c.guard.Load().Run(ctx, call, fn)
}

func (c *currentGuard) use(list []semel.Secret) error {
	g, err := c.build(list)
	if err == nil {
		c.guard.Store(g)
	}
	return err
}

// newGuard makes a guard that reloadSecrets can replace.
func (p *Proxy) newGuard(build func([]semel.Secret) (*semel.Guard, error)) (*currentGuard, error) {
	c := &currentGuard{build: build}
	if err := c.use(p.Secrets); err != nil {
		return nil, err
	}
	p.guards = append(p.guards, c)
	return c, nil
}

// reloadSecrets reads the file of secrets again whenever it changes, until ctx ends.
// The last version of the file is the one that is in use.
func (p *Proxy) reloadSecrets(ctx context.Context, every time.Duration, last version) {
	path := p.Config.SecretFile
	inUse, used := p.Secrets, secrets.Used{}
	_ = used.Add(p.Secrets, path, "secret-file") // each ID is new
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := modified(path)
		if now == last {
			continue
		}
		last = now
		list, err := secrets.Read(path, "secret-file")
		if err == nil {
			err = used.Add(list, path, "secret-file")
		}
		for _, g := range p.guards {
			if err == nil {
				err = g.use(list)
			}
		}
		if err != nil {
			p.Log.Error("the secrets have changed, but cannot be used; the last ones stay in use until this process stops, so that there is time; docs/how-to/rotate-secrets.md says what to do without a copy", "error", err)
			continue
		}
		p.Log.Info("read the secrets again", secrets.Order(list)...)
		secrets.WarnDropped(p.Log, inUse, list, path)
		inUse = list
		input.WarnMode(p.Log, path)
	}
}

// version tells one content of a file from another.
type version struct {
	modified time.Time
	size     int64
}

func modified(path string) version {
	info, err := os.Stat(path)
	if err != nil {
		return version{}
	}
	return version{info.ModTime(), info.Size()}
}
