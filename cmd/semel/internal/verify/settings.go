package verify

import (
	"context"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

var settingsCheck = check{
	name:  "settings",
	claim: "The store's own check finds no setting under which it cannot keep its promises.",
	run: func(ctx context.Context, p *probe) error {
		if p.target.Volatile {
			p.warn("the records are in memory: when the process ends, all keys are free again")
		}
		p.tried(1)
		c, ok := store.As[store.Checker](p.target.Stores[0])
		if !ok {
			if !p.target.Volatile {
				p.warn("the store has no check of its settings: whether what it has acknowledged survives a crash is not known")
			}
			return nil
		}
		for _, line := range input.Lines(c.Check(ctx)) {
			p.broken("%s", line)
		}
		return ctx.Err()
	},
}
