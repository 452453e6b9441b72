package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/internal/proctest"
)

// result is what a run of the command left.
type result struct {
	code           int
	stdout, stderr string
}

// command runs the command in this process.
func command(t testing.TB, args ...string) result { return commandIn(t, nil, "", args...) }

func commandIn(t testing.TB, vars map[string]string, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout bytes.Buffer
	var stderr proctest.Log
	code := Run(ctx, args, func(name string) string { return vars[name] }, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.Own()}
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// It runs alone, because clients of Redis in other tests would write to its stderr.
func TestRun_InvalidInput_OneLineExitCode2(t *testing.T) {
	good := []string{"--upstream", "http://127.0.0.1:1", "--scope", "single"}
	proxy := func(more ...string) []string { return append(append([]string{"proxy"}, good...), more...) }
	conf := func(doc string) []string { return []string{"proxy", "--config", write(t, "semel.yaml", doc)} }
	for want, args := range map[string][]string{
		`semel: unexpected argument bogus`:                                         {"bogus"},
		`semel: unknown flag --bogus`:                                              proxy("--bogus"),
		`semel: --lease: "abc" is not a duration; write one`:                       proxy("--lease", "abc"),
		`semel proxy: --lease: "1ms": must be from 100ms to 1h0m0s`:                proxy("--lease", "1ms"),
		`semel: --max-body: "lots" is not a size; write one`:                       proxy("--max-body", "lots"),
		`semel proxy: --on-doubt: "maybe": choose retry or park`:                   proxy("--on-doubt", "maybe"),
		`semel proxy: --scope: "tenant": choose whose keys are whose: single (`:    {"proxy", "--upstream", "http://a", "--scope", "tenant"},
		`semel proxy: --scope: is required; choose whose keys are whose: single (`: {"proxy", "--upstream", "http://a"},
		`semel proxy: --upstream: is required`:                                     {"proxy", "--scope", "single"},
		`semel proxy: --store: "mysql://x": choose sqlite:PATH`:                    proxy("--store", "mysql://x"),
		`semel proxy: --jwks: is required with scope jwt:CLAIM`:                    {"proxy", "--upstream", "http://a", "--scope", "jwt:sub"},
		`semel proxy: --store: "redis://h/0": does not take on-doubt park`:         {"proxy", "--upstream", "http://a", "--scope", "single", "--on-doubt", "park", "--store", "redis://h/0"},
		`semel proxy: --scope: "single": verifies no tokens`:                       proxy("--jwks", "x"),
		`semel proxy: --trusted-gateways: is empty; name at least one`:             proxy("--trusted-gateways", ""),
		`semel proxy: --tls-client-ca: is empty; give it a value`:                  proxy("--tls-client-ca", ""),
		`semel proxy: --listen: "nowhere": write host:port`:                        proxy("--listen", "nowhere"),
		`semel proxy: --reconcile-url: "http://a": is asked only about parked`:     proxy("--reconcile-url", "http://a"),
		`semel proxy: --secret-file: "none": there is no such file; if the store has records that were hashed with a secret, copy the file of the processes that wrote them; only for a store without them, make it with: (umask 077; echo "$(date +%F-%H%M%S):$(openssl rand -hex 32)" > none)`: proxy("--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"), "--secret-file", "none"),
		`semel proxy: --encryption-keys: "none": there is no such file; if the store has encrypted records, copy the file of the processes that wrote them; only for a store without them, make it with: (umask 077; echo "$(date +%F-%H%M%S) $(openssl rand -base64 32)" > none)`:               proxy("--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"), "--encryption-keys", "none"),
		`semel proxy: --require-encrypted: needs encryption-keys`: proxy("--require-encrypted"),
		`semel proxy: --hash-keys-file: "none": there is no such file; if the store has hashed records, copy the file of the processes that wrote them; only for a store without them, make it with: (umask 077; openssl rand -base64 32 > none)`: proxy("--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"), "--hash-keys-file", "none"),
		`semel console: --users: "none": there is no such file; make it with: (umask 077; htpasswd -cB none USER)`:                                                                                                                                {"console", "--users", "none"},
		`semel proxy: --tls-cert: cannot be used: none/c: there is no such file; see what is there with: ls -l none`:                                                                                                                              proxy("--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"), "--tls-cert", "none/c", "--tls-key", "none/k"),
		`semel proxy: --hook-ca: cannot be used: none/c: there is no such file; see what is there with: ls -l none`:                                                                                                                               proxy("--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"), "--on-doubt", "park", "--reconcile-url", "https://a", "--hook-ca", "none/c"),
		`semel proxy: --upstream-ca: cannot be used: none/c: there is no such file; see what is there with: ls -l none`:                                                                                                                           proxy("--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"), "--upstream", "https://a", "--upstream-ca", "none/c"),
		`semel inspect list: --encryption-keys: "none": there is no such file; if the store has`:                                                                                                                                                  {"inspect", "list", "--store", "sqlite:none.db", "--encryption-keys", "none"},
		`semel proxy: --config: "CONF": there is no such file; see what is there with: ls -l `:                                                                                                                                                    proxy("--config", "none"),
		`semel proxy: --config: "CONF": cannot be read: is a directory`:                                                                                                                                                                           {"proxy", "--config", t.TempDir()},
		`semel proxy: --upstream: "http://a:65536": write an absolute URL`:                                                                                                                                                                        {"proxy", "--upstream", "http://a:65536", "--scope", "single"},
		`semel proxy: --key-headers: "x-a": is listed twice`:                                                                                                                                                                                      proxy("--key-headers", "X-A,x-a"),
		`semel proxy: --key-headers: "host": belongs to the connection`:                                                                                                                                                                           proxy("--key-headers", "host"),
		`semel proxy: --key-headers: "Transfer-Encoding": belongs to the connection`:                                                                                                                                                              proxy("--key-headers", "X-A,Transfer-Encoding"),
		`semel proxy: --key-headers: "Semel-Key": is removed on the way`:                                                                                                                                                                          proxy("--key-headers", "Semel-Key"),
		`semel: --log-level: `: proxy("--log-level", "loud"),
		`semel proxy: CONF:2: "leese": is no field that is known here`:   conf("upstream: http://a\nleese: 1s\n"),
		`semel proxy: CONF:3: rules[0].wait: "soon" is not a duration`:   conf("rules:\n- match: /a\n  wait: soon\n"),
		`semel proxy: CONF:1: scope: "all": choose whose keys are whose`: conf("scope: all\nupstream: http://a\n"),
		`semel sweep: --every: "1ms": must be from 100ms to 1d`:          {"sweep", "--every", "1ms"},
		`semel sweep: --store: "x": choose sqlite:PATH`:                  {"sweep", "--store", "x"},
		`semel doctor: --store: "memory:": lives inside another process`: {"doctor", "--store", "memory:"},
		`semel migrate: --store: "memory:": has no schema`:               {"migrate", "--store", "memory:"},
		`semel migrate: --partitions: "4": is for a store in PostgreSQL`: {"migrate", "--partitions", "4"},
		`semel migrate: --partitions: "300": must be 1 to 256`:           {"migrate", "--partitions", "300", "--print", "--store", "postgres://h/d"},
		`semel inspect list: --limit: "0": must be at least 1`:           {"inspect", "list", "--limit", "0"},
		`semel inspect list: --steps: needs --json`:                      {"inspect", "list", "--steps", "--store", "sqlite:x"},
		`semel inspect list: --show-body: needs --json`:                  {"inspect", "list", "--show-body", "--store", "sqlite:x"},
		`semel: --state: store: state "done" is not one of started, processing, released, completed, failed, unknown (or parked, which is the same)`: {"inspect", "list", "--state", "done"},
		`semel: expected "<key>"`: {"inspect", "get"},
		`semel: missing flags: --fence=N, --reason=TEXT, --verdict=VERDICT; semel inspect get KEY shows the fence; see semel inspect resolve --help`:            {"inspect", "resolve", "k"},
		`semel: missing flags: --fence=N, --reason=TEXT; semel saga show NAME ID shows the fence; see semel saga retry --help`:                                  {"saga", "retry", "order", "o1"},
		`semel saga skip: --result: "tx-1": must be the result that the step would have returned, as JSON, such as '"tx-1"' with both pairs of quotes, or null`: {"saga", "skip", "order", "o1", "charge", "--result", "tx-1", "--fence", "1", "--reason", "r"},
		`semel: missing flags: --reason=TEXT; see `:                                    {"inspect", "reopen", "k", "--fence", "1"},
		`semel: --verdict must be one of "happened","did-not-happen","failed" but got`: {"inspect", "resolve", "k", "--fence", "1", "--verdict", "dunno", "--reason", "r"},
	} {
		r := command(t, args...)
		got := r.stderr
		for i, a := range args {
			if a == "--config" {
				got = strings.ReplaceAll(got, args[i+1], "CONF")
			}
		}
		if r.code != program.ExitUsage || !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 || r.stdout != "" {
			t.Errorf("%q: exit code %d\n got %s\nwant %s", args, r.code, got, want)
		}
	}
}

func TestRun_Failure_ExitCode1(t *testing.T) {
	t.Parallel()
	absent := "sqlite:" + filepath.Join(t.TempDir(), "none.db")
	good := []string{"proxy", "--upstream", "http://127.0.0.1:1", "--scope", "single"}
	for name, args := range map[string][]string{
		"sweep":               {"sweep", "--once", "--store", absent},
		"doctor":              {"doctor", "--store", absent},
		"get":                 {"inspect", "get", "k", "--store", absent},
		"list":                {"inspect", "list", "--store", absent},
		"a directory":         append(good, "--store", "sqlite:"+t.TempDir()),
		"an address of other": append(good, "--store", "memory:", "--listen", "192.0.2.1:1"),
	} {
		if r := command(t, args...); r.code != program.ExitFailed || r.stderr == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Of two addresses, the error says which is taken.
func TestProxy_AddressInUse_ErrorNamesOption(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for option, args := range map[string][]string{
		"--listen":       {"--listen", l.Addr().String()},
		"--admin-listen": {"--listen", "127.0.0.1:0", "--admin-listen", l.Addr().String()},
	} {
		r := command(t, append([]string{"proxy", "--upstream", "http://127.0.0.1:1", "--scope", "single", "--store", "memory:"}, args...)...)
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, "semel proxy: "+option+": listen tcp "+l.Addr().String()) {
			t.Errorf("%+v", r)
		}
	}
}

// A mistake on the command line points at the help of the command that was meant.
func TestRun_WrongCommandLine_PointsAtHelpOfCommand(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"saga show order": "semel saga show", "saga list --stuk": "semel saga list", "saga lst": "semel saga", "inspect get": "semel inspect get",
		"outbox drop": "semel outbox drop", "proxy --bogus": "semel proxy", "erase x": "semel erase", "bogus": "semel", "--bogus": "semel",
	} {
		if r := command(t, strings.Fields(args)...); r.code != program.ExitUsage || !strings.HasSuffix(r.stderr, "; see "+want+" --help\n") {
			t.Errorf("%s: %+v, want a pointer at %s --help", args, r, want)
		}
	}
}

func TestHelp_EveryCommand_HasExample(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"proxy", "inspect get", "inspect list", "inspect resolve", "inspect reopen", "sweep", "migrate", "doctor", "version"} {
		r := command(t, append(strings.Fields(verb), "--help")...)
		if r.code != program.ExitOK || !strings.Contains(r.stdout, "Example") || !strings.Contains(r.stdout, "semel "+verb) || !strings.Contains(r.stdout, "--json") {
			t.Errorf("%s: %+v", verb, r)
		}
		// A heading of capitals alone before a paragraph is printed so.
		if strings.Contains(r.stdout, "\n# ") {
			t.Errorf("%s: a heading is printed with a #:\n%s", verb, r.stdout)
		}
	}
	if r := command(t); r.code != program.ExitOK || !strings.Contains(r.stdout, "proxy [flags]") {
		t.Errorf("no arguments: %+v", r)
	}
}

func TestVersionFlag_PrintsOneLine(t *testing.T) {
	t.Parallel()
	r, same := command(t, "--version"), command(t, "version")
	if r.code != program.ExitOK || r.stderr != "" || !strings.HasPrefix(r.stdout, "semel ") || strings.Count(r.stdout, "\n") != 1 || r.stdout != same.stdout {
		t.Errorf("--version: %+v; version: %+v", r, same)
	}
}

func TestDemo_NamesItsProgram(t *testing.T) {
	t.Parallel()
	if r := command(t, "demo"); r.code != program.ExitFailed || !strings.Contains(r.stderr, "go run github.com/semel-go/semel/cmd/semel/demo@latest") {
		t.Errorf("%+v", r)
	}
}

func TestVersion_TextAndJSON(t *testing.T) {
	t.Parallel()
	if r := command(t, "version"); r.code != program.ExitOK || !strings.HasPrefix(r.stdout, "semel ") {
		t.Errorf("%+v", r)
	}
	var b program.Build
	if r := command(t, "version", "--json"); json.Unmarshal([]byte(r.stdout), &b) != nil || b.Version == "" || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("%+v", r)
	}
}

func TestRun_WriterFails_ExitFailed(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	w := iotest.TruncateWriter(&stderr, 0) // accepts all
	if code := Run(t.Context(), []string{"version"}, func(string) string { return "" }, nil, w, &stderr); code != program.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if code := Run(t.Context(), []string{"version"}, func(string) string { return "" }, nil, broken{}, &stderr); code != program.ExitFailed {
		t.Errorf("exit code %d", code)
	}
}

// broken is a pipe whose reader has gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

// The client of Redis logs by itself, in words of its own.
func TestLog_JSON_AllLinesJSON(t *testing.T) {
	t.Parallel()
	const nobody = "redis://127.0.0.1:1/0"
	logs := 0 // of all commands, because the client does not promise a line for each
	for verb, args := range map[string][]string{
		"doctor": {"doctor"}, "inspect list": {"inspect", "list"}, "sweep": {"sweep", "--once"}, "verify": {"verify"},
		"proxy": {"proxy", "--upstream", "http://127.0.0.1:1", "--scope", "single"},
	} {
		r := command(t, append(args, "--store", nobody, "--json")...)
		for line := range strings.Lines(r.stderr) {
			switch {
			case json.Valid([]byte(line)):
				logs++
			case !strings.HasPrefix(line, "semel "+verb+": "): // the error that it ends with
				t.Errorf("%s: no line of JSON: %s", verb, line)
			}
		}
		if r.code != program.ExitFailed {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	if logs == 0 {
		t.Error("no command logged anything")
	}
}
