package demo

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

	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

// records are where the proxy keeps its own.
type records struct {
	url storeurl.URL
	// server and schema are of PostgreSQL; empty: a file in the temporary
	// directory, which goes with that.
	server, schema string
}

// newRecords names a store that nobody else uses. It does no I/O.
func newRecords(o *Options, dir string) (r *records, err error) {
	r = &records{}
	at := "sqlite:" + filepath.Join(dir, "semel.db")
	if o.Store != "" {
		if _, err := storeurl.Parse(o.Store, "--store"); err != nil {
			return nil, err
		}
		u, err := url.Parse(o.Store)
		if err != nil { // its message would show the password; Parse has parsed it, so it cannot be
			return nil, errors.New("--store: is not a URL")
		}
		r.server, r.schema = o.Store, "semel_demo_"+strings.ToLower(rand.Text()[:12])
		q := u.Query()
		q.Set("semel-schema", r.schema)
		u.RawQuery = q.Encode()
		at = u.String()
	}
	r.url, err = storeurl.Parse(at, "--store")
	return r, err
}

// args and env tell the proxy. A password is not among the arguments, which
// others may see.
func (r *records) args() []string {
	if r.schema != "" {
		return nil
	}
	return []string{"--store=" + r.url.String()}
}

func (r *records) env() []string {
	if r.schema == "" {
		return nil
	}
	return []string{"SEMEL_STORE=" + r.url.Secret()}
}

// dropWithin is how long it may take to drop the schema: killed proxies may
// hold locks until the server has noticed their end.
const dropWithin = 30 * time.Second

// drop removes what the records leave outside of the temporary directory, also
// after the end of ctx. Nil r has none.
func (r *records) drop(ctx context.Context) error {
	if r == nil || r.schema == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWithin)
	defer cancel()
	db, err := pgx.Connect(ctx, r.server)
	if err == nil {
		_, err = db.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{r.schema}.Sanitize()+" CASCADE")
		err = errors.Join(err, db.Close(ctx))
	}
	if err != nil {
		return fmt.Errorf("the schema %s of the demo is left in the database, drop it yourself: %w", r.schema, err)
	}
	return nil
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
