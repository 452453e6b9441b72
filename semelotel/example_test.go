package semelotel_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// serve runs a service over a store, with telemetry.
func serve(st store.Store, handle func(semel.Runner) error) error {
	tel, err := semelotel.New(nil) // the global providers
	if err != nil {
		return err
	}
	guard, err := semel.New(tel.Store(st), &semel.Options{Observe: tel.Observe(semel.LogEvents(nil))})
	if err != nil {
		return err
	}
	run := tel.Runner(guard)                     // for Do, semelhttp.Middleware and consume.New
	if err := tel.CountInDoubt(st); err != nil { // the gauges of the calls in doubt, for alerts
		return err
	}
	return handle(run)
}

// The providers that the program has set for all libraries; here none, so that nothing
// is recorded.
func Example_globalProviders() {
	err := serve(memstore.New(nil), func(run semel.Runner) error {
		call := semel.Call{Operation: "charge", Tenant: "ann", Key: "order-17", Payload: semel.JSON(4200)}
		receipt, err := semel.Do(context.Background(), run, call, func(context.Context, *semel.Execution) (string, error) { return "receipt", nil })
		fmt.Println(receipt)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: receipt
}

// A service has exporters that send to a collector; this one keeps the spans in memory.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	tel, err := semelotel.New(&semelotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := semel.New(tel.Store(memstore.New(nil)), &semel.Options{Observe: tel.Observe(semel.LogEvents(nil))})
	if err != nil {
		log.Fatal(err)
	}
	run := tel.Runner(guard)
	for range 2 { // a client that retries
		call := semel.Call{Operation: "charge", Tenant: "ann", Key: "order-17", Payload: semel.JSON(4200)}
		_, err := semel.Do(context.Background(), run, call, func(context.Context, *semel.Execution) (string, error) { return "receipt", nil })
		if err != nil {
			log.Fatal(err)
		}
	}
	all := spans.GetSpans()
	for _, s := range all {
		for _, a := range s.Attributes {
			if a.Key == "semel.outcome" {
				fmt.Println(s.Name, a.Value.AsString())
			}
		}
	}
	fmt.Println("the replay links to the first run:", all[1].Links[0].SpanContext.TraceID() == all[0].SpanContext.TraceID())
	// Output:
	// semel charge executed
	// semel charge replayed
	// the replay links to the first run: true
}
