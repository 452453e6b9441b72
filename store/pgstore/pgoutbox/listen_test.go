package pgoutbox

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The credentials come from a hook of the pool, as tokens of a cloud do. Another hook
// checks each connection.
func TestWoken_PoolHasHooks_ListenerUsesThem(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	user := cfg.ConnConfig.User
	cfg.ConnConfig.User = "nobody_without_a_token"
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		c.User = user
		return nil
	}
	connected := make(chan bool, 100)
	cfg.AfterConnect = func(context.Context, *pgx.Conn) error {
		connected <- true
		return nil
	}
	app, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	p := openShopOn(t, app, fmt.Sprintf("hooks%d", os.Getpid()))
	for len(connected) > 0 {
		<-connected
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case <-p.box.Woken(): // each new connection wakes the publisher
	case <-ctx.Done():
		t.Fatal("the connection that listens has not begun")
	}
	if len(connected) != 1 {
		t.Errorf("AfterConnect was called %d times for the connection that listens, want once", len(connected))
	}
}
