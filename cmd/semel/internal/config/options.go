// Package config reads the options of semel proxy from flags and a YAML file.
package config

import "reflect"

// Options are the options of the command line and of the top level of the file.
// An option has the same name in both. Nil: not set.
type Options struct {
	Listen           *string `yaml:"listen" name:"listen" placeholder:"ADDR" group:"Where" help:"Address that clients connect to (default 127.0.0.1:8080), or unix:PATH for a Unix socket."`
	AdminListen      *string `yaml:"admin-listen" name:"admin-listen" placeholder:"ADDR" group:"Where" help:"Address of /healthz, /readyz and /metrics (default: none). Keep it private."`
	Upstream         *string `yaml:"upstream" name:"upstream" placeholder:"URL" group:"Where" help:"The one service that requests go to, such as http://127.0.0.1:3000. Required."`
	HostHeader       *string `yaml:"host-header" name:"host-header" placeholder:"WHICH" group:"Where" help:"The Host that the upstream sees: upstream (default; its own) or client (as the client sent it). X-Forwarded-Host has the client's."`
	TrustForwarded   *bool   `yaml:"trust-forwarded" name:"trust-forwarded" negatable:"" group:"Where" help:"Pass on the X-Forwarded-For, -Host and -Proto that come in: only behind a proxy that sets them. By default they are replaced. Where the host name is compared (see fingerprint-headers), X-Forwarded-Host then is, too. Rules with a host match the Host header only: let the proxy in front pass the client's."`
	Store            *string `yaml:"store" name:"store" placeholder:"URL" group:"Where" help:"Where the records are kept: sqlite:PATH (default sqlite:semel.db), postgres://USER@HOST/DATABASE, redis://HOST:PORT/0, dynamodb://TABLE?region=REGION or memory: (lost with the process; only for one replica and trials). Proxies of several services that share a store need an operation each."`
	MovedFrom        *string `yaml:"moved-from" name:"moved-from" placeholder:"URL" group:"Where" help:"During a move to another store: the old one. Before a key is claimed, its record is moved from it to the new store; see semel copy --help. The encryption keys are the same for both."`
	EncryptionKeys   *string `yaml:"encryption-keys" name:"encryption-keys" placeholder:"FILE" group:"Where" help:"Keys that encrypt what the store keeps of requests and answers, one 'id key' a line, the key 32 bytes in base64 (openssl rand -base64 32). The first one encrypts, all decrypt (default: nothing is encrypted). Read again when it changes; see docs/data-protection.md."`
	RequireEncrypted *bool   `yaml:"require-encrypted" name:"require-encrypted" negatable:"" group:"Where" help:"Refuse records in clear text. Set it when all records from before encryption-keys have expired. By default they are read."`

	HashKeysFile *string `yaml:"hash-keys-file" name:"hash-keys-file" placeholder:"FILE" group:"Where" help:"A secret with which tenants and keys are hashed before they are stored, so that the store does not show them: one line, 32 bytes or more in base64 (openssl rand -base64 32). All processes of a store need the same one. Read at the start only: with another secret, or with none, every key is new and its request takes effect again (default: tenants and keys are stored as they are)."`

	Scope       *string   `yaml:"scope" name:"scope" placeholder:"RULE" group:"Whose keys" help:"To whom keys belong: single, header:NAME, jwt:CLAIM or jwt-unverified:CLAIM; see above. Required."`
	JWKS        *string   `yaml:"jwks" name:"jwks" placeholder:"URL|FILE" group:"Whose keys" help:"For jwt:CLAIM, the key set that tokens are verified with. Read again when a token comes and it is 10 minutes old, a file 10 seconds."`
	JWTIssuer   *string   `yaml:"jwt-issuer" name:"jwt-issuer" placeholder:"ISS" group:"Whose keys" help:"For jwt:CLAIM, the issuer that a token must name (default: any whose key is in the set)."`
	JWTAudience *string   `yaml:"jwt-audience" name:"jwt-audience" placeholder:"AUD" group:"Whose keys" help:"For jwt:CLAIM, an audience that a token must name (default: any)."`
	Operation   *string   `yaml:"operation" name:"operation" placeholder:"NAME" group:"Whose keys" help:"The name that keys are kept under (default http). If several services share a store, give each another name: otherwise one service gets no request whose key the other has had, and a hook is asked about requests of the other. A new name forgets all kept keys."`
	KeyHeaders  *[]string `yaml:"key-headers" name:"key-headers" placeholder:"NAME,…" group:"Whose keys" help:"Headers that may hold the key (default Idempotency-Key)."`

	Calls    `yaml:",inline" embed:""`
	Compared `yaml:",inline" embed:""`

	Transports  `yaml:",inline" embed:""`
	Limits      `yaml:",inline" embed:""`
	Observation `yaml:",inline" embed:""`

	Lease        *Duration `yaml:"lease" name:"lease" placeholder:"TIME" group:"Limits" help:"How long a claim holds when its holder dies (default 30s). Renewed every third of it while a request runs."`
	StoreTimeout *Duration `yaml:"store-timeout" name:"store-timeout" placeholder:"TIME" group:"Limits" help:"How long a request waits for one answer of the store; then it is answered 503 (default 5s)."`
	MaxAttempts  *int      `yaml:"max-attempts" name:"max-attempts" placeholder:"N" group:"Limits" help:"How often one key may reach the upstream, not counting answers that say that nothing was done (default 0: no limit)."`
	MaxBody      *Size     `yaml:"max-body" name:"max-body" placeholder:"SIZE" group:"Limits" help:"The largest request body with a key, or in which key-from looks for one (default 10MiB); a larger one is answered 413."`
	BodyTimeout  *Duration `yaml:"body-timeout" name:"body-timeout" placeholder:"TIME" group:"Limits" help:"How long the client of a request with a key may send nothing in the middle of its body; then it is answered 408 (default 60s; 0: for ever). A whole body may take 5 times as long, and a second more for each KiB."`
	WriteTimeout *Duration `yaml:"write-timeout" name:"write-timeout" placeholder:"TIME" group:"Limits" help:"How long a client may take nothing of its answer before it is cut off (default 60s; 0: for ever)."`
	MaxOutcome   *Size     `yaml:"max-outcome" name:"max-outcome" placeholder:"SIZE" group:"Limits" help:"The largest answer to keep (default 1MiB). A larger one reaches the first caller; duplicates are told that it is done."`
	Drain        *Duration `yaml:"drain" name:"drain" placeholder:"TIME" group:"Limits" help:"How long a stop waits for requests in flight (default 30s)."`
	SweepEvery   *Duration `yaml:"sweep-every" name:"sweep-every" placeholder:"TIME" group:"Limits" help:"Pause between two removals of expired records (default 1m; 0: never)."`

	RefusalPause *Duration `yaml:"refusal-pause" name:"refusal-pause" placeholder:"TIME" group:"Limits" help:"How long the proxy waits before it refuses a request of a tenant that is over its limits, so that a client that ignores Retry-After does not take the processor (default 1s; 0: not at all)."`
	UpstreamIdle *Duration `yaml:"upstream-idle" name:"upstream-idle" placeholder:"TIME" group:"Limits" help:"How long an idle connection to the upstream is kept (default 4s; 0: for ever). Keep it below the upstream's own limit, which is 5s in Node and Uvicorn."`

	ReconcileURL     *string   `yaml:"reconcile-url" name:"reconcile-url" placeholder:"URL" group:"Hooks" help:"With on-doubt park, who is asked what became of a request; see above."`
	ReconcileEvery   *Duration `yaml:"reconcile-every" name:"reconcile-every" placeholder:"TIME" group:"Hooks" help:"Pause between two rounds of asking about all parked requests (default 30s; 0: only when a duplicate comes)."`
	ReconcileTimeout *Duration `yaml:"reconcile-timeout" name:"reconcile-timeout" placeholder:"TIME" group:"Hooks" help:"The time limit of one such question (default 10s)."`
	AuthorizeURL     *string   `yaml:"authorize-url" name:"authorize-url" placeholder:"URL" group:"Hooks" help:"Who is asked before a kept answer is repeated; see above."`
	AuthorizeTimeout *Duration `yaml:"authorize-timeout" name:"authorize-timeout" placeholder:"TIME" group:"Hooks" help:"The time limit of one such question (default 5s)."`
	SecretFile       *string   `yaml:"secret-file" name:"secret-file" placeholder:"FILE" group:"Hooks" help:"Secrets that key the hashes of requests, one id:hex a line. The first line hashes, all compare; the word unkeyed as the first line hashes without a secret (default: unkeyed). Never use an id again with another secret; see docs/how-to/rotate-secrets.md. Read again when it changes. If it is not set, the start warns unless the records are in a SQLite file, which only its owner can read."`
}

// Calls are the options that a rule can set for its requests, and the top level
// for all other requests. Nil: as at the top level.
type Calls struct {
	Statuses `yaml:",inline" embed:""`

	OnDoubt         *string   `yaml:"on-doubt" name:"on-doubt" placeholder:"POLICY" group:"Requests" help:"When nobody knows whether a request took effect: retry (default; a repeat goes upstream again) or park (nothing does, until it is reconciled or resolved)."`
	Methods         *[]string `yaml:"methods" name:"methods" placeholder:"METHOD,…" group:"Requests" help:"Methods to protect (default POST,PATCH). All others pass."`
	RequireKey      *bool     `yaml:"require-key" name:"require-key" negatable:"" group:"Requests" help:"Answer 400 to a protected request without a key. By default it passes unprotected, as the log-in form of a page has to, and semel_unkeyed_requests_total counts it."`
	KeyFrom         *[]string `yaml:"key-from" name:"key-from" placeholder:"FIELD,…" group:"Requests" help:"Make the key of these fields of the JSON body, such as order.id, where a client sends none. See above for what passes then."`
	Wait            *Duration `yaml:"wait" name:"wait" placeholder:"TIME" group:"Requests" help:"How long a duplicate of a request in flight waits for its answer (default 0: it gets 409 at once)."`
	Retention       *Duration `yaml:"retention" name:"retention" placeholder:"TIME" group:"Requests" help:"How long an answer is kept (default 24h). Longer than clients retry."`
	NoStore         *bool     `yaml:"no-store" name:"no-store" negatable:"" group:"Requests" help:"Keep the status of the answer and nothing else, for answers that contain secrets. Large answers and streams need it too: they are not kept anyway."`
	Keep5xx         *bool     `yaml:"keep-5xx" name:"keep-5xx" negatable:"" group:"Requests" help:"Take the upstream's 5xx for an answer to keep, not for doubt."`
	UpstreamTimeout *Duration `yaml:"upstream-timeout" name:"upstream-timeout" placeholder:"TIME" group:"Requests" help:"How long the upstream may take for a request with a key, and to begin its answer to any other (default 60s). A client that sends nothing of a body without a key for so long, or takes more than 5 times as long for it and a second more for each KiB, is answered 408."`
}

// Rule sets options for the requests that match.
type Rule struct {
	// Match is a pattern of Go's ServeMux: "POST /payments/{id}", "/files/".
	Match string `yaml:"match"`
	// Operation is a name of its own for the rule's keys.
	Operation *string `yaml:"operation"`
	// PassThrough leaves the requests alone.
	PassThrough bool `yaml:"pass-through"`
	Calls       `yaml:",inline"`
}

// File is the whole file.
type File struct {
	Options `yaml:",inline"`
	Rules   []Rule `yaml:"rules"`
}

// Names returns the names of all options.
func Names() []string { return names(reflect.TypeFor[Options]()) }

func names(t reflect.Type) (list []string) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			list = append(list, names(f.Type)...)
		} else {
			list = append(list, f.Tag.Get("yaml"))
		}
	}
	return list
}
