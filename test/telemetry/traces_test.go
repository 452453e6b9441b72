//go:build unix

package telemetry

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A call in a transaction does not go through a Store of semelotel, and a batch through
// no Runner. All the same its replay links to the first run.
func TestTrace_CallsInTransactions_ReplayLinksToFirstRun(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	st, err := pgstore.New(t.Context(), pool, &pgstore.Options{Schema: "traces"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tel, err := semelotel.New(&semelotel.Options{TracerProvider: provider, MeterProvider: sdkmetric.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	bank, err := pgstore.NewAtomic(st, &semel.Options{Observe: tel.Observe(nil), TxHolder: tel.TxHolder})
	if err != nil {
		t.Fatal(err)
	}
	prefetcher := bank.Prefetcher()
	nothing := func(context.Context, []*pgstore.PendingCall) error { return nil }
	for name, run := range map[string]func(ctx context.Context, calls []semel.Call) []pgstore.BatchResult{
		"Do": func(ctx context.Context, calls []semel.Call) (ended []pgstore.BatchResult) {
			for _, c := range calls {
				_, err := pgstore.Do(ctx, bank, c, func(context.Context, *semel.Execution, pgx.Tx) (int, error) { return 1, nil })
				ended = append(ended, pgstore.BatchResult{Err: err})
			}
			return ended
		},
		"batch": func(ctx context.Context, calls []semel.Call) []pgstore.BatchResult {
			return bank.RunBatch(ctx, calls, nothing)
		},
		"prefetched batch": func(ctx context.Context, calls []semel.Call) []pgstore.BatchResult {
			return prefetcher.Prefetch(ctx, calls).Run(ctx, nothing)
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := []semel.Call{of(name, "a"), of(name, "b"), of(name, "c")}
			var callers []trace.SpanContext
			for range 2 {
				ctx, span := provider.Tracer("test").Start(t.Context(), "caller")
				callers = append(callers, span.SpanContext())
				for i, e := range run(ctx, calls) {
					if e.Err != nil {
						t.Fatalf("call %d: %v", i, e.Err)
					}
				}
				span.End()
			}
			replays := 0
			for _, s := range spans.GetSpans() {
				if s.Name != "semel pay" {
					continue
				}
				first := s.Parent.SpanID() == callers[0].SpanID()
				switch {
				case first && len(s.Links) != 0:
					t.Errorf("the first run has links: %+v", s.Links)
				case first:
				case len(s.Links) != 1 || s.Links[0].SpanContext.TraceID() != callers[0].TraceID() || s.Links[0].SpanContext.SpanID() != callers[0].SpanID():
					t.Errorf("the links of the replay are %+v, want one to %v", s.Links, callers[0])
				default:
					replays++
				}
			}
			if spans.Reset(); replays != len(calls) {
				t.Errorf("%d replays have a link, want %d", replays, len(calls))
			}
		})
	}
	t.Run("Runner", func(t *testing.T) {
		call := of("Runner", "a")
		for range 2 {
			if _, err := semel.Do(t.Context(), tel.Runner(bank), call, func(context.Context, *semel.Execution) (int, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
		}
		got := spans.GetSpans()
		if len(got) != 2 || len(got[0].Links) != 0 || len(got[1].Links) != 1 || got[1].Links[0].SpanContext.SpanID() != got[0].SpanContext.SpanID() {
			t.Errorf("the spans are %+v, want a replay that links to the first run", got)
		}
	})
}

func of(tenant, key string) semel.Call {
	return semel.Call{Operation: "pay", Tenant: tenant, Key: key, Payload: semel.NoPayload()}
}
