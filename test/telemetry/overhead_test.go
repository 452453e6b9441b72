//go:build unix

package telemetry

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// discard is an exporter that drops all spans.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// The telemetry may cost a tenth of the throughput of Do on PostgreSQL with 64 callers,
// if each call is sampled. On a machine with other work the throughput depends on who
// gets the processor, so it is the median of pairs that run one after the other.
const mostOverhead = 0.10

func TestDo_WithTelemetry_Overhead(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("a benchmark of a minute; SEMEL_TEST_COMPARE=1 runs it")
	}
	pool, err := pgxpool.New(t.Context(), pgtest.Start(t, pgtest.Durable...).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	st, err := pgstore.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	plain, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	tracer := sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))
	defer func() { _ = tracer.Shutdown(context.WithoutCancel(t.Context())) }()
	tel, err := semelotel.New(&semelotel.Options{TracerProvider: tracer, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := semel.New(tel.Store(st), &semel.Options{Observe: tel.Observe(nil)})
	if err != nil {
		t.Fatal(err)
	}
	const pairs, callers, each = 21, 64, 60
	round := 0
	run := func(r semel.Runner) (took, processor time.Duration) {
		round++
		var wg sync.WaitGroup
		before, begun := processorTime(t), time.Now()
		for c := range callers {
			wg.Go(func() {
				for n := range each {
					call := semel.Call{Operation: "pay", Tenant: "ann", Key: fmt.Sprint(round, "-", c, "-", n), Payload: semel.JSON(n)}
					if _, err := semel.Do(t.Context(), r, call, func(context.Context, *semel.Execution) (int, error) { return n, nil }); err != nil {
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
	run(tel.Runner(guard)) // both are warm now
	var wall, processor []float64
	for i := range pairs {
		var a, b [2]time.Duration
		if i%2 == 0 {
			a[0], a[1] = run(plain)
		}
		b[0], b[1] = run(tel.Runner(guard))
		if i%2 == 1 {
			a[0], a[1] = run(plain)
		}
		wall, processor = append(wall, float64(b[0])/float64(a[0])), append(processor, float64(b[1])/float64(a[1]))
	}
	slices.Sort(wall)
	slices.Sort(processor)
	t.Logf("%d callers, %d pairs of %d calls: with telemetry a call takes %.3f times as long (quartiles %.3f to %.3f), and %.3f times the processor time of the client",
		callers, pairs, callers*each, wall[pairs/2], wall[pairs/4], wall[pairs*3/4], processor[pairs/2])
	if wall[pairs/2] > 1+mostOverhead {
		t.Errorf("telemetry costs %.1f %%, more than %.0f %%", 100*(wall[pairs/2]-1), 100*mostOverhead)
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
