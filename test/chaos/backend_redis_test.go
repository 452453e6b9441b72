//go:build unix

package chaos

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// startRedis starts a server that syncs its log before it answers: what it has
// acknowledged survives a kill.
func startRedis(t testing.TB) instance {
	s := redistest.Start(t, redistest.Durable...)
	return instance{
		url: s.URL(), addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())),
		through: func(addr string) string { return fmt.Sprintf("redis://%s", addr) },
		kill:    func() error { s.Kill(); return nil },
		restart: s.Start,
	}
}

func openRedis(ctx context.Context, url string) (store.Store, func() error, error) {
	st, err := redisstore.Open(ctx, url, &redisstore.Options{AllowPark: true})
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}
