package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/moved"
)

// open opens the store and the listeners. The error names everything that failed,
// files of secrets and certificates too, each with the command that mends it.
func (p *plan) open(ctx context.Context, log *slog.Logger) (st storeurl.Handle, clients, admin net.Listener, err error) {
	var kerr, serr error
	if !p.config.Observe {
		if st, kerr, serr = p.openStore(ctx, log, p.store, program.OpenStore); p.config.MovedFrom != "" && kerr == nil && serr == nil {
			st, serr = p.joinOld(ctx, log, st)
		}
	}
	clients, cerr := program.Listen(ctx, p.config.Where("listen"), p.config.Listen)
	var terr, aerr error
	if p.config.Listener.Cert != "" && cerr == nil && p.files == nil {
		var source *tlsfile.Source
		if source, terr = program.TLSFiles(p.config.Listener, log); terr == nil {
			clients = tls.NewListener(clients, source.Server())
		}
	}
	if p.config.AdminListen != "" {
		admin, aerr = program.Listen(ctx, p.config.Where("admin-listen"), p.config.AdminListen)
	}
	if err = errors.Join(p.files, kerr, serr, cerr, terr, aerr); err == nil {
		return st, clients, admin, nil
	}
	if st != nil {
		err = errors.Join(err, st.Close())
	}
	for _, l := range []net.Listener{clients, admin} {
		if l != nil {
			_ = l.Close()
		}
	}
	return nil, nil, nil, err
}

// openStore opens a store, and reports apart that its keys cannot be used.
func (p *plan) openStore(ctx context.Context, log *slog.Logger, u storeurl.URL,
	open func(context.Context, storeurl.URL, *slog.Logger) (storeurl.Handle, error),
) (st storeurl.Handle, keys, err error) {
	u, keys = u.Encrypted(p.config.EncryptionKeys, p.config.Where("encryption-keys"), p.config.RequireEncrypted, log)
	u.LogEncryption(ctx, log)
	st, err = open(ctx, u, log)
	return st, keys, err
}

// joinOld joins the store with the old one of a move. After an error it closes the store.
func (p *plan) joinOld(ctx context.Context, log *slog.Logger, to storeurl.Handle) (storeurl.Handle, error) {
	from, _, err := p.openStore(ctx, log, p.old.For(storeurl.Source), program.OpenExisting)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.config.Where("moved-from"), err), to.Close())
	}
	st, err := moved.New(ctx, to, from)
	if err != nil {
		return nil, errors.Join(err, from.Close(), to.Close())
	}
	log.Warn("records are moved from the old store as they are needed; once semel copy --verify finds nothing left, start without moved-from. No process may use the old store alone meanwhile",
		"store", p.store.String(), "moved_from", p.old.String())
	return movedHandle{st, to, from}, nil
}

// movedHandle is a store that is joined with the old one of a move.
type movedHandle struct {
	store.Store
	to, from storeurl.Handle
}

// Unwrap lets store.As find the optional interfaces.
func (h movedHandle) Unwrap() store.Store { return h.Store }

// Close closes both stores.
func (h movedHandle) Close() error { return errors.Join(h.to.Close(), h.from.Close()) }

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

// warn logs, once at the start, each choice of options that is unsafe in some
// deployments.
func (p *plan) warn(e *env) {
	log, c := e.log, p.config
	if p.store.Memory() {
		log.Warn("the records are in memory: when this process ends, each request may take effect once more")
	}
	if _, isFile := p.store.File(); isFile || p.store.Memory() {
		if where := program.Replicated(e.getenv); where != "" {
			log.Warn("the records belong to this process alone. If there is a second replica, a duplicate that reaches it takes effect again: run one replica, or choose a store that all replicas share (--store postgres://… or redis://…)",
				"store", p.store.String(), "because", where+" is set")
		}
	}
	if p.rule.NeedsKeys() && (c.JWTIssuer == "" || c.JWTAudience == "") {
		log.Warn("tokens that the issuer made for other services are accepted, because jwt-issuer or jwt-audience is not set; a caller of another service may then take part in a tenant's key space. Set both",
			"jwt_issuer", c.JWTIssuer, "jwt_audience", c.JWTAudience)
	}
	// A SQLite file needs no warning, because only its owner can read it, who can read the
	// file of the secrets, too.
	if _, isFile := p.store.File(); (len(p.secrets) == 0 || p.secrets[0].ID == "") && !isFile && !p.store.Memory() {
		log.Warn("the hashes of requests are unkeyed, because secret-file is not set or its first line is unkeyed; a reader of the store can guess the content of short requests")
	}
	if !p.rule.Shared() && !p.rule.NeedsKeys() && c.Gateways == nil && c.Listener.CA == "" && !program.IsLocal(c.Listen) {
		log.Warn("every peer that reaches this address can name its tenant. Set trusted-gateways, or tls-client-ca, or listen on 127.0.0.1", "listen", c.Listen, "scope", c.Scope)
	}
	input.WarnMode(log, c.SecretFile, c.EncryptionKeys, c.HashKeysFile, c.Listener.Key, c.Connections.Upstream.Key, c.Hooks.Key)
}
