package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

type inspectCmd struct {
	List    inspectListCmd    `cmd:"" help:"List records."`
	Get     inspectGetCmd     `cmd:"" help:"Show one record."`
	Resolve inspectResolveCmd `cmd:"" help:"Say what became of a parked request."`
	Reopen  inspectReopenCmd  `cmd:"" help:"Let a failed request run again."`
}

// storeFlag is common to the commands of inspect.
type storeFlag struct {
	Store string `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store: sqlite:PATH, postgres://USER@HOST/DATABASE, redis://HOST:PORT/0 or dynamodb://TABLE?region=REGION (default ${default})."`
	Keys  string `name:"encryption-keys" placeholder:"FILE" help:"The keys with which the records are encrypted, as for semel proxy (default: they are shown as they are stored)."`
}

// with runs fn with the store, which must exist. log may be nil if no keys are given.
func (c *storeFlag) with(ctx context.Context, log *slog.Logger, fn func(storeurl.Handle) error) (err error) {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	if u, err = u.Encrypted(c.Keys, "--encryption-keys", false, log); err != nil {
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
	Key       raw `arg:"" help:"The idempotency key, without quotes."`
	Operation raw `name:"operation" placeholder:"NAME" default:"http" help:"The operation (default ${default}, which is semel proxy's)."`
	Tenant    raw `name:"tenant" placeholder:"NAME" help:"The tenant of the key; leave it out for scope single."`
}

func (c *keyFlags) key() store.Key {
	return store.Key{Operation: string(c.Operation), Tenant: string(c.Tenant), Value: string(c.Key)}
}

// raw is an argument with its bytes unchanged. Kong would replace bytes that are
// not UTF-8, and so name another record.
type raw string

// Decode implements kong.MapperValue.
func (v *raw) Decode(ctx *kong.DecodeContext) error {
	t, err := ctx.Scan.PopValue("text")
	if err != nil {
		return err
	}
	s, ok := t.Value.(string)
	if !ok {
		return fmt.Errorf("expected text but got %v", t)
	}
	*v = raw(s)
	return nil
}
