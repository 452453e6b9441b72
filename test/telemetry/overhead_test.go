//go:build unix

package telemetry

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// discard is an exporter that drops all spans.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// The telemetry may cost a tenth of the throughput of Do on PostgreSQL with 64 callers.
// On a machine with other work the throughput depends on who gets the processor, so it is
// the median of pairs that run one after the other.
const mostOverhead = 0.10

func TestDo_WithTelemetry_Overhead(t *testing.T) {
	for _, place := range []struct {
		name  string
		start func(testing.TB, ...string) *pgtest.Server
	}{{"SharedProcessors", pgtest.Start}, {"ProcessorForServer", startApart}} {
		t.Run(place.name, func(t *testing.T) {
			st := durableStore(t, place.start)
			for _, sampled := range []float64{0, 0.1, 1} {
				t.Run(fmt.Sprintf("Sampled=%v", sampled), func(t *testing.T) { telemetryOverhead(t, st, sampled) })
			}
		})
	}
}

// startApart starts a server on a processor of its own, as on another machine. This
// process has another one until the test ends.
func startApart(t testing.TB, settings ...string) *pgtest.Server {
	t.Helper()
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		t.Skipf("NOT MEASURED: it needs taskset and two processors (%v)", err)
	}
	server := pgtest.Start(t, settings...)
	text, err := os.ReadFile(filepath.Join(server.DataDir(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	pin := func(pid, processors string) {
		if out, err := exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", processors, pid).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	pin(pid, "1") // its processes for connections get the same
	pin(strconv.Itoa(os.Getpid()), "0")
	procs := runtime.GOMAXPROCS(1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		pin(strconv.Itoa(os.Getpid()), fmt.Sprint("0-", runtime.NumCPU()-1))
	})
	return server
}

// telemetryOverhead compares calls with metrics, and with traces of a part of the calls.
func telemetryOverhead(t *testing.T, st *pgstore.Store, sampled float64) {
	t.Helper()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(sampled)))
	defer func() { _ = tracer.Shutdown(context.WithoutCancel(t.Context())) }()
	tel, err := semelotel.New(&semelotel.Options{TracerProvider: tracer, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := semel.New(tel.Store(st), &semel.Options{Observe: tel.Observe(nil)})
	if err != nil {
		t.Fatal(err)
	}
	compareDo(t, "telemetry", st, tel.Runner(guard), 8)
}

// Encryption of results of 1 KiB may cost as much.
func TestDo_WithEncryption_Overhead(t *testing.T) {
	st := durableStore(t, pgtest.Start)
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("2026-11 MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := encrypted.ReadKeyFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := semel.New(st, &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}})
	if err != nil {
		t.Fatal(err)
	}
	compareDo(t, "encryption", st, guard, 1<<10)
}

// durableStore is a store in PostgreSQL with durable commits. It skips the test unless
// SEMEL_TEST_COMPARE is set.
func durableStore(t *testing.T, start func(testing.TB, ...string) *pgtest.Server) *pgstore.Store {
	t.Helper()
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("a benchmark of a minute; SEMEL_TEST_COMPARE=1 runs it")
	}
	pool, err := pgxpool.New(t.Context(), start(t, pgtest.Durable...).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	st, err := pgstore.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// compareDo compares calls of a plain Guard of the store with those of another runner.
// Each result has size bytes.
func compareDo(t *testing.T, what string, st *pgstore.Store, other semel.Runner, size int) {
	t.Helper()
	plain, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	result := strings.Repeat("r", size)
	const pairs, callers, each = 21, 64, 180
	round := 0
	run := func(r semel.Runner) (took, processor time.Duration) {
		round++
		var wg sync.WaitGroup
		before, begun := processorTime(t), time.Now()
		for c := range callers {
			wg.Go(func() {
				for n := range each {
					call := semel.Call{Operation: "pay", Tenant: "ann", Key: fmt.Sprint(t.Name(), round, "-", c, "-", n), Payload: semel.JSON(n)}
					if _, err := semel.Do(t.Context(), r, call, func(context.Context, *semel.Execution) (string, error) { return result, nil }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begun), processorTime(t) - before
	}
	run(plain)
	run(other) // both are warm now
	var wall, processor []float64
	for i := range pairs {
		var a, b [2]time.Duration
		if i%2 == 0 {
			a[0], a[1] = run(plain)
		}
		b[0], b[1] = run(other)
		if i%2 == 1 {
			a[0], a[1] = run(plain)
		}
		wall, processor = append(wall, float64(b[0])/float64(a[0])), append(processor, float64(b[1])/float64(a[1]))
	}
	slices.Sort(wall)
	slices.Sort(processor)
	t.Logf("%d callers, %d pairs of %d calls: with %s a call takes %.3f times as long (quartiles %.3f to %.3f), and %.3f times the processor time of the client",
		callers, pairs, callers*each, what, wall[pairs/2], wall[pairs/4], wall[pairs*3/4], processor[pairs/2])
	if wall[pairs/2] > 1+mostOverhead {
		t.Errorf("%s costs %.1f %%, more than %.0f %%", what, 100*(wall[pairs/2]-1), 100*mostOverhead)
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
