package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// createData writes the data of a new server. initdb takes a second of processor time,
// so its result is kept in the user's cache directory, and later servers of the same
// version start from a copy.
func (s *Server) createData() error {
	kept, err := s.keptData()
	if err != nil {
		return s.initialize() // the user has no cache directory
	}
	if _, err := os.Stat(kept); err == nil {
		return s.copyData(kept, s.DataDir())
	}
	if err := s.initialize(); err != nil {
		return err
	}
	// The rename is atomic and fails if another process was first.
	part, err := os.MkdirTemp(filepath.Dir(kept), "new-")
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer func() { _ = os.RemoveAll(part) }()
	if err := s.copyData(s.DataDir(), filepath.Join(part, "data")); err != nil {
		return err
	}
	_ = os.Rename(filepath.Join(part, "data"), kept)
	return nil
}

func (s *Server) initialize() error {
	return s.tool("initdb", "-D", s.DataDir(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
}

// keptData is where the data of new servers of this version is kept.
func (s *Server) keptData() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "semel-pgtest")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	version, err := exec.CommandContext(ctx, filepath.Join(s.bin, "postgres"), "--version").Output()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, url.PathEscape(strings.TrimSpace(string(version)))), nil
}

// copyData copies a data directory with the owner and the permissions of its files.
func (s *Server) copyData(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return finish(exec.CommandContext(ctx, "cp", "-a", from, to))
}
