package main

import (
	"context"
	"errors"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

type inspectCmd struct {
	List    inspectListCmd    `cmd:"" help:"List records."`
	Get     inspectGetCmd     `cmd:"" help:"Show one record."`
	Resolve inspectResolveCmd `cmd:"" help:"Say what became of a parked request."`
}

// storeFlag is common to the verbs of inspect.
type storeFlag struct {
	Store string `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store: sqlite:PATH, postgres://USER@HOST/DATABASE or redis://HOST:PORT/0 (default ${default})."`
}

// with runs fn with the store, which has to be there.
func (c *storeFlag) with(ctx context.Context, fn func(storeurl.Handle) error) (err error) {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return fn(h)
}

// keyFlags name one record.
type keyFlags struct {
	Key       string `arg:"" help:"The idempotency key, without quotes."`
	Operation string `name:"operation" placeholder:"NAME" default:"http" help:"The operation (default ${default}, which is semel proxy's)."`
	Tenant    string `name:"tenant" placeholder:"NAME" help:"Whose key it is; leave it out for scope single."`
}

func (c *keyFlags) key() store.Key {
	return store.Key{Operation: c.Operation, Tenant: c.Tenant, Value: c.Key}
}
