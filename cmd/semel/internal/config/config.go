package config

import (
	"net/url"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/store"
)

// Config is the complete configuration from flags, file and defaults. It is valid
// as far as Resolve can check without I/O.
type Config struct {
	Listen      string
	AdminListen string // empty: none
	Upstream    *url.URL
	ClientHost  bool // the upstream sees the client's Host
	Store       string
	MovedFrom   string // the old store of a move; empty: none
	// TrustForwarded passes incoming X-Forwarded-* headers on.
	TrustForwarded bool

	Scope       string // see package scope
	JWKS        string
	JWTIssuer   string
	JWTAudience string
	KeyHeaders  []string

	Lease        time.Duration
	StoreTimeout time.Duration
	MaxAttempts  int
	MaxBody      int64
	MaxOutcome   int
	Drain        time.Duration
	BodyTimeout  time.Duration // 0: none
	SweepEvery   time.Duration // 0: never
	UpstreamIdle time.Duration
	RefusalPause time.Duration // before the refusal of a tenant; 0: none

	ReconcileURL     *url.URL      // nil: no hook
	ReconcileEvery   time.Duration // 0: never by itself
	ReconcileTimeout time.Duration
	AuthorizeURL     *url.URL // nil: no hook
	AuthorizeTimeout time.Duration
	SecretFile       string
	EncryptionKeys   string // a file; empty: nothing is encrypted
	RequireEncrypted bool
	HashKeysFile     string // empty: tenants and keys are stored as they are

	FingerprintHeaders []string // nil: the usual ones
	ReplayHeaders      []string // besides the usual ones
	RefusalOrigins     []string

	Rest  Route   // for requests that no rule matches
	Rules []Route // in the order of the file, which does not matter: the most specific pattern wins

	Observe     bool // forward every request unchanged, and count
	ObserveKeys int

	WriteTimeout time.Duration // 0: none
	Limits       limit.Limits
	Connections

	where func(field string) string
}

// Where names the place where an option was set, for messages about a mistake that
// shows later.
func (c *Config) Where(field string) string { return c.where(field) }

// Route is the configuration of the requests that match.
type Route struct {
	Match       string // "/": all; a host in it is as Host has it
	Operation   string
	PassThrough bool

	OnDoubt    store.Policy
	Methods    []string
	RequireKey bool
	KeyFrom    []string
	Wait       time.Duration
	Retention  time.Duration
	NoStore    bool
	Keep5xx    bool

	FinalStatuses, NoEffectStatuses []int

	UpstreamTimeout time.Duration
}

// Parks reports whether any request is parked on doubt.
func (c *Config) Parks() bool {
	for i := range c.Rules {
		if c.Rules[i].OnDoubt == store.Park && !c.Rules[i].PassThrough {
			return true
		}
	}
	return c.Rest.OnDoubt == store.Park
}

// Operations returns the operations of all routes.
func (c *Config) Operations() []string {
	all := []string{c.Rest.Operation}
	for i := range c.Rules {
		all = append(all, c.Rules[i].Operation)
	}
	return all
}

// Retention returns the longest retention of all routes.
func (c *Config) Retention() time.Duration {
	d := c.Rest.Retention
	for i := range c.Rules {
		d = max(d, c.Rules[i].Retention)
	}
	return d
}
