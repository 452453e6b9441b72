package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby makes a server that follows s (which needs wal_level=replica, the
// default), and starts it. Remove it in the end.
func (s *Server) Standby() (*Server, error) {
	b := &Server{bin: s.bin, settings: append([]string{"hot_standby=on"}, s.settings...)}
	var err error
	if b.dir, err = os.MkdirTemp("", "semel-pg-"); err != nil {
		return nil, err
	}
	if err = b.copyOf(s); err == nil {
		err = b.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

func (s *Server) copyOf(from *Server) error {
	attr, err := ownerAttr(s.dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "pg_basebackup"), "-h", "127.0.0.1", "-p", strconv.Itoa(from.port),
		"-U", "postgres", "-D", s.data(), "-R", "-X", "stream", "-c", "fast")
	cmd.SysProcAttr, cmd.Dir = attr, s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: pg_basebackup: %w\n%s", err, out)
	}
	return nil
}

// Promote makes a standby a primary, and returns when it takes writes.
func (s *Server) Promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), ready)
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
	for replica := true; replica; pause(5 * time.Millisecond) {
		if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&replica); err != nil {
			return err
		}
	}
	return nil
}
