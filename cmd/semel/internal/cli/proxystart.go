package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
)

// open opens the store and the listeners. The error names everything that failed,
// each with the command that mends it.
func (p *plan) open(ctx context.Context, log *slog.Logger) (st storeurl.Handle, clients, admin net.Listener, err error) {
	st, serr := program.OpenStore(ctx, p.store, log)
	clients, cerr := program.Listen(ctx, p.config.Where("listen"), p.config.Listen)
	var terr, aerr error
	if p.config.Listener.Cert != "" && cerr == nil {
		var source *tlsfile.Source
		if source, terr = program.TLSFiles(p.config.Listener, log); terr == nil {
			clients = tls.NewListener(clients, source.Server())
		}
	}
	if p.config.AdminListen != "" {
		admin, aerr = program.Listen(ctx, p.config.Where("admin-listen"), p.config.AdminListen)
	}
	if err = errors.Join(serr, cerr, terr, aerr); err == nil {
		return st, clients, admin, nil
	}
	if serr == nil {
		err = errors.Join(err, st.Close())
	}
	for _, l := range []net.Listener{clients, admin} {
		if l != nil {
			_ = l.Close()
		}
	}
	return nil, nil, nil, err
}

// tempDir returns the folder for large request bodies. Empty means the system's folder
// for temporary files. If no file can be written there, it is the folder of the SQLite
// file.
func (p *plan) tempDir(log *slog.Logger) string {
	err := proxy.CheckTempDir("")
	if err == nil {
		return ""
	}
	if path, ok := p.store.File(); ok && proxy.CheckTempDir(filepath.Dir(path)) == nil {
		return filepath.Dir(path)
	}
	log.Error("request bodies over 64 KiB are answered 503, and /readyz too", "error", err)
	return ""
}
