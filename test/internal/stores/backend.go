package stores

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/sqlitestore"
)

// Backend is a kind of store that several processes open.
type Backend struct {
	Name string
	// Start makes an empty store for one test, and its server if it has one.
	Start func(t testing.TB) Instance
	// Open opens a store that Start has made, in this process or in another.
	Open func(ctx context.Context, url string) (st store.Store, end func() error, err error)
	// HasServer tells whether the fields of an Instance's server are set.
	HasServer bool
}

// Instance is an empty store for one test.
type Instance struct {
	URL string // for Backend.Open

	// Kill ends the server as a power failure would. Restart starts it again with
	// the data on its disk, and returns when it answers.
	Kill    func()
	Restart func() error
	// Addr is the server's address. Through is the URL with another address in
	// place of Addr, such as a proxy's.
	Addr    string
	Through func(addr string) (url string)
}

// Backends are all stores that several processes can share.
var Backends = []Backend{
	{Name: "sqlite", Start: StartSQLite, Open: openSQLite},
	{Name: "postgres", Start: startPostgres, Open: openPostgres, HasServer: true},
	{Name: "redis", Start: startRedis, Open: openRedis, HasServer: true},
}

// BackendNamed is one of Backends.
func BackendNamed(name string) (b Backend, ok bool) {
	for _, b := range Backends {
		if b.Name == name {
			return b, true
		}
	}
	return Backend{}, false
}

// StartSQLite is a new file for a SQLite store.
func StartSQLite(t testing.TB) Instance {
	return Instance{URL: filepath.Join(t.TempDir(), "semel.db")}
}

// server is an Instance with a private server.
func server(s interface {
	URL() string
	Port() int
	Kill()
	Start() error
}, url string) Instance {
	return Instance{
		URL: s.URL(), Kill: s.Kill, Restart: s.Start,
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())),
		Through: func(addr string) string { return fmt.Sprintf(url, addr) },
	}
}

// startPostgres starts a server that syncs its log before it confirms a commit. A
// connection that a bad network stalls while it begins is tried again after 5 s.
func startPostgres(t testing.TB) Instance {
	return server(pgtest.Start(t, pgtest.Durable...), "postgres://postgres@%s/postgres?sslmode=disable&connect_timeout=5")
}

// startRedis starts a server that syncs its log before it answers.
func startRedis(t testing.TB) Instance {
	return server(redistest.Start(t, redistest.Durable...), "redis://%s")
}

func openSQLite(ctx context.Context, url string) (store.Store, func() error, error) {
	st, err := sqlitestore.Open(ctx, url, nil)
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}

func openPostgres(ctx context.Context, url string) (store.Store, func() error, error) {
	st, err := pgstore.Open(ctx, url, nil)
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}

func openRedis(ctx context.Context, url string) (store.Store, func() error, error) {
	st, err := redisstore.Open(ctx, url, &redisstore.Options{AllowPark: true})
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}
