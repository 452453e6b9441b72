package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

// completed reads which keys have a completed record.
func completed(ctx context.Context, path string) (_ map[ledger.ID]bool, err error) {
	url, err := storeurl.Parse("sqlite:"+path, "the demo's store")
	if err != nil {
		return nil, err
	}
	st, err := url.OpenExisting(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	l, ok := store.As[store.Lister](st)
	if !ok {
		return nil, errors.New("the store cannot be searched")
	}
	done := map[ledger.ID]bool{}
	for f, err := range l.List(ctx, store.Filter{States: []store.State{store.Completed}}) {
		if err != nil {
			return nil, fmt.Errorf("the records: %w", err)
		}
		done[ledger.ID{Tenant: f.Record.Key.Tenant, Key: f.Record.Key.Value}] = true
	}
	return done, nil
}
