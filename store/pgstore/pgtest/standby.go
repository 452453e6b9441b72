package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
)

// Standby makes a server that replicates s, and starts it. It needs the setting
// wal_level=replica, which is PostgreSQL's default. The caller removes it.
func (s *Server) Standby() (*Server, error) {
	return start(s.bin, append([]string{"hot_standby=on"}, s.settings...), func(b *Server) error {
		return b.tool("pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", "-D", b.DataDir(), "-R", "-X", "stream", "-c", "fast")
	})
}

// Promote makes a standby a primary, and returns when it takes writes.
func (s *Server) Promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	done := false
	if err := conn.QueryRow(ctx, "SELECT pg_promote(true, 60)").Scan(&done); err != nil || !done {
		return fmt.Errorf("pgtest: promote: %v, %w", done, err)
	}
	return proctest.Until(limit, 5*time.Millisecond, func() error {
		replica := true
		err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&replica)
		if err == nil && replica {
			err = errors.New("pgtest: the standby is not a primary yet")
		}
		return err
	})
}
