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
// files of secrets and certificates too, each with the command that mends it.
func (p *plan) open(ctx context.Context, log *slog.Logger) (st storeurl.Handle, clients, admin net.Listener, err error) {
	u, kerr := p.store.Encrypted(p.config.EncryptionKeys, p.config.Where("encryption-keys"), p.config.RequireEncrypted, log)
	st, serr := program.OpenStore(ctx, u, log)
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
	if _, isFile := p.store.File(); len(p.secrets) == 0 && !isFile && !p.store.Memory() {
		log.Warn("the hashes of requests are unkeyed, because secret-file is not set; a reader of the store can guess the content of short requests")
	}
	if !p.rule.Shared() && !p.rule.NeedsKeys() && c.Gateways == nil && c.Listener.CA == "" && !program.IsLocal(c.Listen) {
		log.Warn("every peer that reaches this address can name its tenant. Set trusted-gateways, or tls-client-ca, or listen on 127.0.0.1", "listen", c.Listen, "scope", c.Scope)
	}
	for _, path := range []string{c.SecretFile, c.EncryptionKeys, c.Listener.Key, c.Connections.Upstream.Key, c.Hooks.Key} {
		if err := program.CheckMode(path); err != nil {
			log.Warn("a file with secrets is readable for others", "error", err)
		}
	}
}
