package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

// records are where the proxy keeps its own.
type records struct {
	url storeurl.URL
	// name is the name of the demo's own schema or key prefix in a database
	// server, and remove removes it. They are empty and nil for a file in the
	// temporary directory.
	name   string
	remove func(context.Context) error
}

// newRecords names a store that nobody else uses. It does no I/O.
func newRecords(o *Options, dir string) (r *records, err error) {
	r = &records{}
	if o.Store == "" {
		r.url, err = storeurl.Parse("sqlite:"+filepath.Join(dir, "semel.db"), "--store")
		return r, err
	}
	if _, err := storeurl.Parse(o.Store, "--store"); err != nil {
		return nil, err
	}
	u, err := url.Parse(o.Store)
	if err != nil { // its message would show the password; Parse has parsed it, so it cannot be
		return nil, errors.New("--store: is not a URL")
	}
	r.name = "semel_demo_" + strings.ToLower(rand.Text()[:12])
	q := u.Query()
	if strings.HasPrefix(u.Scheme, "postgres") {
		q.Set("semel-schema", r.name)
		server, name := o.Store, r.name
		r.remove = func(ctx context.Context) error { return dropSchema(ctx, server, name) }
	} else {
		r.name += ":"
		server, prefix := plainRedis(*u), r.name
		q.Set("semel-prefix", prefix)
		q.Set("semel-allow-park", "true") // a lost record belongs to the demo
		r.remove = func(ctx context.Context) error { return unlinkKeys(ctx, server, prefix) }
	}
	u.RawQuery = q.Encode()
	r.url, err = storeurl.Parse(u.String(), "--store")
	return r, err
}

// args and env tell the proxy. A password is not among the arguments, which
// others may see.
func (r *records) args() []string {
	if r.name != "" {
		return nil
	}
	return []string{"--store=" + r.url.String()}
}

func (r *records) env() []string {
	if r.name == "" {
		return nil
	}
	return []string{"SEMEL_STORE=" + r.url.Secret()}
}

// dropWithin is how long it may take to drop the records: killed proxies may
// hold locks until the server has noticed their end.
const dropWithin = 30 * time.Second

// drop removes what the records leave outside of the temporary directory, also
// after the end of ctx. Nil r has none.
func (r *records) drop(ctx context.Context) error {
	if r == nil || r.remove == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWithin)
	defer cancel()
	if err := r.remove(ctx); err != nil {
		return fmt.Errorf("%s of the demo is left in the database, drop it yourself: %w", r.name, err)
	}
	return nil
}

func dropSchema(ctx context.Context, server, name string) error {
	db, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE")
	return errors.Join(err, db.Close(ctx))
}

// completed reads which keys have a completed record.
func completed(ctx context.Context, url storeurl.URL) (_ map[ledger.ID]bool, err error) {
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
