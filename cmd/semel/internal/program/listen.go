package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
)

// Listen listens on an address or, after "unix:", on a socket. where names the
// option in errors.
func Listen(ctx context.Context, where, addr string) (net.Listener, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
		removeStale(ctx, path)
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, addr)
	if err != nil {
		return nil, mendListen(addr, fmt.Errorf("%s: %w", where, err))
	}
	if network == "unix" {
		if err := os.Chmod(addr, 0o660); err != nil { // the owner and the group may connect
			_ = l.Close()
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	return l, nil
}

// removeStale removes a socket on which no process listens.
func removeStale(ctx context.Context, path string) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
		return
	}
	if info, serr := os.Lstat(path); serr == nil && info.Mode()&fs.ModeSocket != 0 && errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // if that fails, so does Listen
	}
}

// mendListen adds to an error the command that helps against it.
func mendListen(addr string, err error) error {
	_, port, perr := net.SplitHostPort(addr)
	switch {
	case perr == nil && errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w (find the process with: ss -ltnp 'sport = :%s')", err, port)
	case perr == nil && errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w (see the addresses of this machine with: ip address)", err)
	case perr != nil && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (make the folder with: mkdir -p %s)", err, filepath.Dir(addr))
	}
	return err
}

// TLSFiles reads the files for TLS. It returns nil if none are given. tlsfile.PartOf says
// which of the files an error is about.
func TLSFiles(f tlsfile.Files, log *slog.Logger) (*tlsfile.Source, error) {
	if f == (tlsfile.Files{}) {
		return nil, nil
	}
	s, err := tlsfile.New(f, func(err error) {
		log.Error("a file for TLS has changed, but cannot be used; the last one stays in use", "error", err)
	}, func() { input.WarnMode(log, f.Key) })
	if e, ok := errors.AsType[*tlsfile.Error](err); ok {
		e.Err = input.UnreadableFile(e.Err)
	}
	return s, err
}
