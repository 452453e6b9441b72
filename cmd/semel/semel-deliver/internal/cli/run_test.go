package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
)

// result is what a run of the command left.
type result struct {
	code           int
	stdout, stderr string
}

// command runs the command in this process.
func command(t testing.TB, vars map[string]string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout bytes.Buffer
	var stderr proctest.Log
	code := Run(ctx, args, func(name string) string { return vars[name] }, &stdout, &stderr)
	return result{code, stdout.String(), stderr.Own()}
}

func TestRun_InvalidInput_OneLineExitCode2(t *testing.T) {
	t.Parallel()
	with := func(more ...string) []string {
		return append([]string{"--from", "nats://127.0.0.1:1/ORDERS/billing", "--to", "http://127.0.0.1:1", "--store", "memory:"}, more...)
	}
	for want, args := range map[string][]string{
		`semel-deliver: unknown flag --bogus`:                                                                    with("--bogus"),
		`semel-deliver: --from: is required: the broker`:                                                         {"--to", "http://a"},
		`semel-deliver: --to: is required: the service that gets the messages, such as http://1`:                 {"--from", "nats://a/S/c"},
		`semel-deliver: --from: "ftp": is no broker`:                                                             {"--from", "ftp://a", "--to", "http://a"},
		`semel-deliver: --from: "pulsar://a/b": must name the subscription`:                                      {"--from", "pulsar://a/b", "--to", "http://a"},
		`semel-deliver: --to: "127.0.0.1:3000": write an absolute URL`:                                           {"--from", "nats://a/S/c", "--to", "127.0.0.1:3000"},
		`semel-deliver: --to: write an absolute URL of http or https without a user`:                             {"--from", "nats://a/S/c", "--to", "http://u:s3cret@a"},
		`semel-deliver: --store: "mysql://x": choose sqlite:PATH`:                                                with("--store", "mysql://x"),
		`semel-deliver: --store: "redis://h/0": does not take on-doubt park`:                                     with("--store", "redis://h/0", "--on-doubt", "park"),
		`semel-deliver: --on-doubt: "maybe" is no policy; choose retry or park`:                                  with("--on-doubt", "maybe"),
		`semel-deliver: --mode: "fast" is no mode; choose binary or structured`:                                  with("--mode", "fast"),
		`semel-deliver: --key: "body": choose header:NAME`:                                                       with("--key", "body"),
		`semel-deliver: --key: "header:": has no name after the colon`:                                           with("--key", "header:"),
		`semel-deliver: --key: "reject,hash": name at least one source; unprotected and reject`:                  with("--key", "reject,hash"),
		`semel-deliver: --scope: "tenant": choose single, or header:NAME`:                                        with("--scope", "tenant"),
		`semel-deliver: --compare: "all": choose body or nothing`:                                                with("--compare", "all"),
		`semel-deliver: --order: "key": choose none, subject, header:NAME`:                                       with("--order", "key"),
		`semel-deliver: --group: "a#b": `:                                                                        with("--group", "a#b"),
		`semel-deliver: --timeout: "1ns": must be from 1ms to 1d`:                                                with("--timeout", "1ns"),
		`semel-deliver: --lease: "1ms": must be from 100ms to 1h0m0s`:                                            with("--lease", "1ms"),
		`semel-deliver: --concurrency: "0": must be from 1 to 10000`:                                             with("--concurrency", "0"),
		`semel-deliver: --in-flight: "5": must be from concurrency, which is 64, to 1000000`:                     with("--in-flight", "5"),
		`semel-deliver: --tenant-requests: "-1": must be from 0 to 1000000`:                                      with("--scope", "header:account", "--tenant-requests=-1"),
		`semel-deliver: --tenant-requests: "5": has no effect with --scope single, because all messages belong`:  with("--tenant-requests", "5"),
		`semel-deliver: --max-body: "lots" is not a size; write one`:                                             with("--max-body", "lots"),
		`semel-deliver: --done-statuses: "99": must be a status from 200 to 599`:                                 with("--done-statuses", "99"),
		`semel-deliver: --final-statuses: "409": is one of done-statuses, too`:                                   with("--done-statuses", "409", "--final-statuses", "409"),
		`semel-deliver: --header: "Authorization Bearer x": write "Name: value"`:                                 with("--header", "Authorization Bearer x"),
		`semel-deliver: --header: "semel-fence": is a header that this program sets itself`:                      with("--header", "semel-fence: 1"),
		`semel-deliver: --forward-headers: "ce-id": is a header that this program sets itself`:                   with("--forward-headers", "ce-id"),
		`semel-deliver: --forward-headers: "a b": is no header name`:                                             with("--forward-headers", "a b"),
		`semel-deliver: --event-type: must be text without control characters`:                                   with("--event-type", ""),
		`semel-deliver: --reconcile-url: "http://a": is asked only about parked messages`:                        with("--reconcile-url", "http://a"),
		`semel-deliver: --admin-listen: "nowhere": write host:port`:                                              with("--admin-listen", "nowhere"),
		`semel-deliver: --secret-file: "none": there is no such file; if the store has `:                         with("--secret-file", "none"),
		`semel-deliver: --encryption-keys: "none": there is no such file; if the store has `:                     with("--encryption-keys", "none"),
		`semel-deliver: --hash-keys-file: "none": there is no such file; if the store has `:                      with("--hash-keys-file", "none"),
		`semel-deliver: --require-encrypted: needs --encryption-keys`:                                            with("--require-encrypted"),
		`semel-deliver: --to-cert: "x": a certificate and its key belong together`:                               with("--to", "https://a", "--to-cert", "x"),
		`semel-deliver: --hook-ca: cannot be used: none: there is no such file; see what is there with: ls -l .`: with("--on-doubt", "park", "--reconcile-url", "https://a", "--hook-ca", "none"),
		`semel-deliver: --to-ca: has no effect, because nothing is sent by TLS; write an https: URL`:             with("--to-ca", "none"),
		`semel-deliver: --hook-key: has no effect, because nothing is sent by TLS`:                               with("--on-doubt", "park", "--reconcile-url", "http://a", "--hook-key", "none"),
	} {
		r := command(t, nil, args...)
		if r.code != program.ExitUsage || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%q: exit code %d\n got %s\nwant %s", args, r.code, r.stderr, want)
		}
		if strings.Contains(r.stderr, "s3cret") {
			t.Errorf("the password is shown: %s", r.stderr)
		}
	}
}

func TestRun_NoBroker_ExitCode1WithNextStep(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"see whether the server runs at 127.0.0.1:1":           {"--from", "nats://127.0.0.1:1/ORDERS/billing"},
		"semelamqp: no connection to the broker":               {"--from", "amqp://127.0.0.1:1?queue=orders"},
		"no broker can be reached; see whether one runs there": {"--from", "kafka://127.0.0.1:1/orders", "--group", "billing"},
		"store: ":                                {"--from", "nats://127.0.0.1:1/ORDERS/billing", "--store", "sqlite:" + t.TempDir()},
		"--admin-listen: listen tcp 192.0.2.1:1": {"--from", "nats://127.0.0.1:1/ORDERS/billing", "--admin-listen", "192.0.2.1:1"},
		`queue "orders": SQS gives no answer; check the cli`: {"--from", "sqs://orders?region=eu-west-1&endpoint=http://127.0.0.1:1"},
	} {
		t.Run(want, func(t *testing.T) {
			r := command(t, nil, append([]string{"--to", "http://127.0.0.1:1", "--store", "memory:"}, args...)...)
			if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
				t.Errorf("%q: exit code %d\n%s", args, r.code, r.stderr)
			}
		})
	}
}

// All that is wrong at a start is said at once, with the next step.
func TestRun_SeveralStartProblems_AllNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "none")
	r := command(t, nil, "--to", "http://127.0.0.1:1", "--from", "nats://127.0.0.1:1/ORDERS/billing", "--store", "sqlite:"+dir+"/semel.db", "--admin-listen", l.Addr().String())
	for _, want := range []string{"mkdir -p " + dir, "ss -ltnp", "see whether the server runs at 127.0.0.1:1"} {
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
}

func TestRun_Variables_SetFlags(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"SEMEL_FROM": "ftp://a", "SEMEL_TO": "http://a", "SEMEL_LEASE": "1ms", "SEMEL_HEADER": "Bad Header: x"}
	r := command(t, vars)
	for _, want := range []string{`--from: "ftp"`, `--lease: "1ms"`, `--header: "Bad Header"`} {
		if r.code != program.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("no %s in\n%s", want, r.stderr)
		}
	}
}

func TestRun_HelpAndVersion(t *testing.T) {
	t.Parallel()
	help := command(t, nil)
	for _, want := range []string{"semel deliver --from 'kafka://", "--on-doubt", "WHAT THE ANSWER MEANS", "sqs://QUEUE?region=NAME", "deduplication-id"} {
		if help.code != program.ExitOK || !strings.Contains(help.stdout, want) {
			t.Errorf("no %s in the help:\n%s", want, help.stdout)
		}
	}
	if r := command(t, nil, "--version"); r.code != program.ExitOK || !strings.HasPrefix(r.stdout, "semel-deliver ") || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

// Each choice that is unsafe in some deployments is said once, at the start.
func TestRun_UnsafeChoice_Warns(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secret, []byte("a:00112233445566778899aabbccddeeff\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := command(t, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "--from", "nats://127.0.0.1:1/ORDERS/billing", "--to", "http://127.0.0.1:1", "--store", "memory:",
		"--key", "unprotected", "--secret-file", secret, "--json")
	for _, want := range []string{"the records are in memory", "KUBERNETES_SERVICE_HOST is set", "a new key each time", "chmod 600"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no warning %q in\n%s", want, r.stderr)
		}
	}
}

// With --hash-keys-file the service gets the hash of the key, and no file of the store
// has the key. The log names the secret, and has no key.
func TestRun_HashKeysFile_KeyIsHashedForStoreAndService(t *testing.T) {
	t.Parallel()
	dir, secret := t.TempDir(), []byte(strings.Repeat("s", 32))
	file := filepath.Join(dir, "hash-keys")
	if err := os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(secret)), 0o600); err != nil {
		t.Fatal(err)
	}
	broker, e := openNATS(t), newEndpoint(t)
	d := startDelivery(t, append([]string{"--to", e.URL, "--store", "sqlite:" + filepath.Join(dir, "semel.db"), "--hash-keys-file", file, "--log-level", "debug"}, broker.args...)...)
	broker.publish(t, "canary-4711", "", "{}")
	hash := store.Key{Value: "canary-4711"}.Hashed(secret).Value
	eventually(t, "the service has the message", func() bool { return e.effects() == 1 })
	if len(e.of(hash)) != 1 {
		t.Errorf("the service got %q, want %s", e.order, hash)
	}
	d.find(t, "(secret_id=[0-9a-f]{8})")
	if code := d.stop(); code != program.ExitOK || strings.Contains(d.log.String(), "canary-4711") {
		t.Errorf("exit code %d; the log is %s", code, d.log)
	}
	for _, end := range []string{"", "-wal"} {
		if doc, err := os.ReadFile(filepath.Join(dir, "semel.db"+end)); strings.Contains(string(doc), "canary-4711") || end == "" && !strings.Contains(string(doc), hash) {
			t.Errorf("semel.db%s has the key, or not its hash; %v", end, err)
		}
	}
	again := startDelivery(t, append([]string{"--to", e.URL, "--store", "sqlite:" + filepath.Join(dir, "semel.db")}, broker.args...)...)
	again.find(t, "(--hash-keys-file is not set)")
	again.stop()
}

// The default of --tenant-requests follows --concurrency; 0 means no limit.
func TestOptions_TenantRequests_DefaultIsAQuarterOfConcurrency(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{nil, 16}, {[]string{"--concurrency", "10"}, 2}, {[]string{"--concurrency", "1"}, 1},
		{[]string{"--tenant-requests", "0"}, 0}, {[]string{"--tenant-requests", "100"}, 100},
	} {
		o := new(options)
		parser, err := kong.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(append([]string{"--from", "nats://a/S/c", "--to", "http://a", "--store", "memory:", "--scope", "header:account"}, c.args...)); err != nil {
			t.Fatal(err)
		}
		p, err := o.plan(slog.New(slog.DiscardHandler))
		if err != nil || p.service.TenantRequests != c.want {
			t.Errorf("%q: %+v, want %d; error %v", c.args, p, c.want, err)
		}
	}
}
