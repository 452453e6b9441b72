package shardstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

// journal keeps the steps of a call in the shard of its record. If one shard keeps
// no steps, the store keeps none.
type journal struct {
	*Store
	rest     store.Store
	journals []store.Journal
}

func (j journal) Unwrap() store.Store { return j.rest }

// RecordStep implements store.Journal.
func (j journal) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	i := j.shardOf(l.Key)
	return j.shards[i].wrap(j.journals[i].RecordStep(ctx, l, s))
}

// Steps implements store.Journal.
func (j journal) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	i := j.shardOf(l.Key)
	steps, err := j.journals[i].Steps(ctx, l)
	return steps, j.shards[i].wrap(err)
}
