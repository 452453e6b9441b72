//go:build unix

package chaos

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// backend is a kind of store. Adding one is adding an entry to backends.
type backend struct {
	name string
	// start makes an empty store of its own for a test, and a server for it if
	// it needs one. It skips the test if that cannot be had.
	start func(t testing.TB) instance
	// server is whether there is a server to kill and a network to break:
	// then an instance has all its fields.
	server bool
	// open opens the store that start has made: in the test, and in workers.
	open func(ctx context.Context, url string) (st store.Store, end func() error, err error)
}

// instance is a store that has been started.
type instance struct {
	url string // what open gets

	// The rest is for stores with a server; an embedded one leaves it nil.

	// kill ends the server as a power failure would, restart starts it again
	// with what it has on disk, and returns when it answers.
	kill    func() error
	restart func() error
	// through is the url with another address in the server's place, and addr
	// is the server's own: for a proxy between.
	addr    string
	through func(addr string) (url string)
}

var backends = []backend{
	{name: "sqlite", start: startSQLite, open: openSQLite},
	{name: "postgres", start: startPostgres, server: true, open: openPostgres},
	{name: "redis", start: startRedis, server: true, open: openRedis},
	// A store with a server has an entry like this one, and a file
	// backend_<name>_test.go with its start and open.
}

func backendNamed(name string) (backend, bool) {
	for _, b := range backends {
		if b.name == name {
			return b, true
		}
	}
	return backend{}, false
}

// onEach runs a test against each store.
func onEach(t *testing.T, f func(t *testing.T, b backend, in instance)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { f(t, b, b.start(t)) })
	}
}

// onEachPolicy runs a test against each store under each policy, some at once.
func onEachPolicy(t *testing.T, f func(t *testing.T, b backend, in instance, policy semel.Policy)) {
	for _, b := range backends {
		for _, policy := range policies {
			t.Run(b.name+"/"+policy.String(), func(t *testing.T) {
				t.Parallel()
				f(t, b, b.start(t), policy)
			})
		}
	}
}

// policies are both, for tests that hold both to their promises.
var policies = []semel.Policy{semel.Retry, semel.Park}

// opened is the store for the test itself.
func opened(t testing.TB, b backend, in instance) store.Store {
	t.Helper()
	st, end, err := b.open(t.Context(), in.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func startSQLite(t testing.TB) instance {
	return instance{url: filepath.Join(t.TempDir(), "chaos.db")}
}

func openSQLite(ctx context.Context, url string) (store.Store, func() error, error) {
	st, err := sqlitestore.Open(ctx, url, nil)
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}
