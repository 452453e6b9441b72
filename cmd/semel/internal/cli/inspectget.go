package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

type inspectGetCmd struct {
	storeFlag
	keyFlags
	ShowBody bool `name:"show-body" help:"Show the headers and the body of the kept answer, too. Cookies are never shown."`
}

// Help implements kong.HelpProvider.
func (*inspectGetCmd) Help() string {
	return `Examples:

    semel inspect get 8e03978e-40d5-43dd-bc93-6894a57f9324 --tenant ann
    semel inspect get k1 --operation payments --store sqlite:/var/lib/semel.db --show-body --json
`
}

func (c *inspectGetCmd) Run(ctx context.Context, e *env) error {
	return c.with(ctx, func(h storeurl.Handle) error {
		f, err := look(ctx, h, c.key())
		if err != nil {
			return err
		}
		v := viewOf(&f, c.ShowBody)
		if e.json {
			return json.NewEncoder(e.stdout).Encode(v)
		}
		return v.print(e.stdout)
	})
}

// look finds a record. Its error says where else the record could be.
func look(ctx context.Context, h storeurl.Handle, k store.Key) (store.Found, error) {
	f, err := h.Get(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		whose := "shared by all tenants; give --tenant for a key of one"
		if k.Tenant != "" {
			whose = fmt.Sprintf("of tenant %q", k.Tenant)
		}
		return f, fmt.Errorf("there is no record of operation %q, %s, with this key; try semel inspect list", k.Operation, whose)
	}
	return f, err
}
