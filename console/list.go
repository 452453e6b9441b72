package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// mostRows is how many records a page lists.
const mostRows = 100

// list is a list of records, and why it may not be whole.
type list struct {
	Entries    []entry
	More       bool   // there are more than mostRows
	Unreadable int    // records that cannot be read
	Late       bool   // the search was ended before it had read all
	IsDown     bool   // a part of the store did not answer
	Down       string `json:"-"` // its error, whose text can differ each time
}

// Whole reports whether the list has all that there is, or as many as a page lists.
func (l list) Whole() bool { return !l.Late && !l.IsDown && l.Unreadable == 0 }

// Count is how many records there are, with a plus if there can be more. Empty: there are none.
func (l list) Count() string {
	switch {
	case l.More || !l.Whole():
		return fmt.Sprintf("%d+", len(l.Entries))
	case len(l.Entries) == 0:
		return ""
	}
	return strconv.Itoa(len(l.Entries))
}

// Unnumbered is the list without the number of its unreadable records, for a page that says it
// elsewhere.
func (l list) Unnumbered() list {
	l.Unreadable = 0
	return l
}

// searchTime is how long a search may read the store.
const searchTime = 5 * time.Second

// mostRead is how many records in doubt each list of the overview reads. An open page reads
// them again every 2 s, and after an outage there can be any number.
const mostRead = 1000

// read lists the records that a filter selects, and that match accepts if it is not nil. If
// f has a limit, match sees at most as many.
func (c *Console) read(ctx context.Context, f store.Filter, match func(*store.Found) bool) (list, error) {
	within, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var l list
	answered, seen, most := false, 0, f.Limit
	switch {
	case match == nil:
		f.Limit = mostRows + 1
	case most > 0:
		f.Limit = most + 1
	}
	for found, err := range c.lister.List(within, f) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			l.Unreadable++
			continue
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			l.Late = true
			return l, nil
		case err != nil && answered: // package shardstore lists its other shards first
			l.IsDown, l.Down = true, err.Error()
			return l, nil
		case err != nil:
			return l, err
		}
		answered = true
		seen++
		switch {
		case most > 0 && seen > most:
			l.Late = true
			return l, nil
		case match != nil && !match(&found):
			continue
		case len(l.Entries) == mostRows:
			l.More = true
			return l, nil
		}
		l.Entries = append(l.Entries, entryOf(&found))
	}
	return l, nil
}

// overview is what needs an operator.
func (c *Console) overview(ctx context.Context, _ *http.Request) (any, error) {
	data := struct {
		Calls, Sagas list
		Outbox       *outbox.Stats
		OutboxIsDown bool
		OutboxDown   string `json:"-"` // why the outbox did not answer
		Quarantined  []outbox.Entry
	}{}
	var err error
	if data.Calls, err = c.inDoubt(ctx, false); err != nil { // two lists, because many calls would hide a saga
		return nil, err
	}
	if data.Sagas, err = c.inDoubt(ctx, true); err != nil {
		return nil, err
	}
	for _, l := range []list{data.Calls, data.Sagas} {
		slices.SortFunc(l.Entries, func(a, b entry) int { return a.Updated.Compare(b.Updated) })
	}
	if c.options.Outbox == nil {
		return data, nil
	}
	within, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	stats, err := c.options.Outbox.Stats(within)
	if err == nil {
		data.Quarantined, err = c.options.Outbox.List(within, outbox.Quarantined, 0, mostRows)
	}
	if err != nil {
		data.OutboxIsDown, data.OutboxDown = true, err.Error()
	}
	stats.OldestAge = stats.OldestAge.Truncate(time.Minute) // a live page changes with it
	data.Outbox = &stats
	return data, nil
}

// inDoubt lists the stuck sagas, or the calls in doubt that are no sagas, among the first
// mostRead records in doubt.
func (c *Console) inDoubt(ctx context.Context, sagas bool) (list, error) {
	f := store.Filter{States: []store.State{store.Unknown}, Repeats: true, Limit: mostRead}
	return c.read(ctx, f, func(found *store.Found) bool { return protocol.IsSaga(found.Record.Key) == sagas })
}

// filter is the form of the list of records.
type filter struct {
	State, Operation, Tenant, Key string
}

func filterOf(form url.Values) filter {
	return filter{form.Get("state"), form.Get("operation"), form.Get("tenant"), form.Get("key")}
}

// isHashed reports whether a text can be a hash by store.Key.Hashed.
func isHashed(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// records lists records, or searches for a key or the hash that logs show.
func (c *Console) records(ctx context.Context, r *http.Request) (any, error) {
	form := filterOf(r.URL.Query())
	data := struct {
		Filter filter
		States []string
		List   list
	}{Filter: form}
	for s := store.Started; s.Valid(); s++ {
		data.States = append(data.States, s.String())
	}
	data.States = append(data.States, expired)
	f := store.Filter{Operation: form.Operation, Tenant: form.Tenant}
	if !isHashed(f.Tenant) { // a link has the tenant as it is stored
		f.Tenant = store.Key{Tenant: f.Tenant}.Hashed(c.options.HashKeys).Tenant
	}
	if form.State != "" && form.State != expired {
		var s store.State
		if err := s.UnmarshalText([]byte(form.State)); err != nil {
			return nil, badInput(fmt.Sprintf("There is no state %q; choose %s; parked is the same as unknown.", form.State, strings.Join(data.States, ", ")))
		}
		f.States = []store.State{s}
	}
	key := strings.TrimSpace(form.Key)
	f.Expired = form.State == expired // no state of a record
	if key == "" {
		var err error
		data.List, err = c.read(ctx, f, nil)
		return data, err
	}
	asStored := store.Key{Operation: form.Operation, Tenant: f.Tenant, Value: key}
	hashed := store.Key{Operation: form.Operation, Tenant: form.Tenant, Value: key}.Hashed(c.options.HashKeys)
	if form.Operation != "" && form.State == "" { // the whole name of a record, unless it is a hash
		for _, k := range slices.Compact([]store.Key{hashed, asStored}) {
			found, err := c.store.Get(ctx, k)
			if err == nil {
				data.List.Entries = []entry{entryOf(&found)}
				return data, nil
			}
			if !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
		}
	}
	f.Keys = []string{key, hashed.Value}
	var err error
	data.List, err = c.read(ctx, f, nil)
	return data, err
}
