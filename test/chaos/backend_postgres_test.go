//go:build unix

package chaos

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func startPostgres(t testing.TB) instance {
	s := pgtest.Start(t, pgtest.Durable...)
	at := func(addr string) string { return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", addr) }
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))
	return instance{
		url: s.URL(), addr: addr, through: at,
		kill:    func() error { s.Kill(); return nil },
		restart: s.Start,
	}
}

func openPostgres(ctx context.Context, url string) (store.Store, func() error, error) {
	st, err := pgstore.Open(ctx, url, nil)
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}
