package cli

import "github.com/semel-go/semel/cmd/semel/internal/program"

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
	for _, path := range []string{c.SecretFile, c.Listener.Key, c.Connections.Upstream.Key, c.Hooks.Key} {
		if err := program.CheckMode(path); err != nil {
			log.Warn("a file with secrets is readable for others", "error", err)
		}
	}
}
