package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestEnvironment_OverridesFileNotFlags(t *testing.T) {
	t.Parallel()
	conf := write(t, "semel.yaml", "upstream: http://a\nscope: single\nlease: 1ms\ndrain: 2h\nwait: 1h\n")
	vars := map[string]string{"SEMEL_CONFIG": conf, "SEMEL_LEASE": "2ms", "SEMEL_DRAIN": "3h", "SEMEL_REQUIRE_KEY": "false", "SEMEL_METHODS": "POST,put"}
	r := commandIn(t, vars, "", "proxy", "--lease", "3ms")
	for _, want := range []string{`--lease: "3ms"`, `--drain: "3h0m0s"`, `:5: wait: "1h0m0s"`, `--methods: "put"`} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %s in\n%s", want, r.stderr)
		}
	}
}

// The variable of --store serves every command with a store.
func TestEnvironment_Store_AppliesToInspect(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"SEMEL_STORE": "postgres://db/shop"}
	var c cli
	parser, err := kong.New(&c, kong.Resolvers(variables(func(name string) string { return vars[name] })))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"inspect", "list"}); err != nil || c.Inspect.List.Store != vars["SEMEL_STORE"] {
		t.Errorf("inspect list: %q, %v", c.Inspect.List.Store, err)
	}
}

// A command in the container of a proxy must not take the proxy's options for its own.
func TestEnvironment_OfAProxy_TellsCommandsTheStoreOnly(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"SEMEL_STORE": "sqlite:a.db", "SEMEL_ENCRYPTION_KEYS": "keys", "SEMEL_HASH_KEYS_FILE": "hash-keys", "SEMEL_AUDIT": "audit", "SEMEL_JSON": "true",
		"SEMEL_OPERATION": "POST /pay", "SEMEL_RETENTION": "1h", "SEMEL_LISTEN": "0.0.0.0:8080", "SEMEL_TLS_CERT": "cert",
	}
	parse := func(args ...string) (c cli) {
		parser, err := kong.New(&c, kong.Resolvers(variables(func(name string) string { return vars[name] })))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return c
	}
	if e := parse("erase", "--tenant", "ann"); e.Erase.Operation != "" || e.Erase.Store != "sqlite:a.db" || e.Erase.HashKeysFile != "hash-keys" || e.Audit != "audit" || !e.JSON {
		t.Errorf("erase: %+v, audit %q, JSON %v", e.Erase, e.Audit, e.JSON)
	}
	if c := parse("console"); c.Console.Listen == vars["SEMEL_LISTEN"] || c.Console.TLSCert != "" {
		t.Errorf("console: %+v", c.Console)
	}
	if s := parse("sweep"); s.Sweep.Store != "sqlite:a.db" || time.Duration(s.Sweep.Retention) != 7*24*time.Hour {
		t.Errorf("sweep: %+v", s.Sweep)
	}
}
