package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// sagaRow is a saga that has not ended.
type sagaRow struct {
	entry
	Due time.Time // when a worker goes on with it; zero if it is stuck
}

// sagas lists the sagas of a definition that have not ended, by the index of timers.
func (c *Console) sagas(ctx context.Context, r *http.Request) (any, error) {
	data := struct {
		Name       string
		Names      []string
		Rows       []sagaRow
		More       bool
		Keeps      bool   // the store keeps sagas
		Unreadable bool   // a timer or a record cannot be read
		IsDown     bool   // a part of the store did not answer
		Down       string `json:"-"` // its error, whose text can differ each time
	}{Name: r.URL.Query().Get("name"), Names: c.options.Sagas}
	timers, ok := store.As[store.Timers](c.store)
	data.Keeps = ok
	if data.Name == "" && len(data.Names) > 0 {
		data.Name = data.Names[0]
	}
	if !ok || data.Name == "" {
		return data, nil
	}
	const always = 200 * 365 * 24 * time.Hour
	due, _, err := timers.DueTimers(ctx, saga.Key(data.Name, "", "").Operation, always, mostRows)
	data.Unreadable = errors.Is(err, store.ErrCorrupt)
	switch {
	case err == nil || data.Unreadable:
	case len(due) == 0:
		return nil, err
	default: // package shardstore has the timers of its other shards
		data.IsDown, data.Down = true, err.Error()
	}
	data.More = len(due) == mostRows
	for _, t := range due {
		f, err := c.store.Get(ctx, t.Key)
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && f.Record.State.Terminal():
			continue
		case errors.Is(err, store.ErrCorrupt):
			data.Unreadable = true
			continue
		case err != nil:
			return nil, err
		}
		row := sagaRow{entryOf(&f), t.Due}
		if f.Record.State == store.Unknown {
			row.Due = time.Time{}
		}
		data.Rows = append(data.Rows, row)
	}
	return data, nil
}
