package semel_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

// BenchmarkDo measures the Guard alone, because the memory store answers at once.
func BenchmarkDo(b *testing.B) {
	payload := []byte(`{"amount":1000,"currency":"EUR","to":"DE89370400440532013000"}`)
	fn := func(context.Context, *semel.Execution) (int, error) { return 42, nil }
	for _, p := range []struct {
		name string
		make func() semel.Payload
	}{{"no payload", semel.NoPayload}, {"bytes", func() semel.Payload { return semel.Bytes(payload) }}} {
		b.Run("new/"+p.name, func(b *testing.B) {
			g := guard(b, memstore.New(nil), nil)
			keys := make([]string, b.N)
			for i := range keys {
				keys[i] = strconv.Itoa(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if _, err := semel.Do(b.Context(), g, semel.Call{Operation: pay, Tenant: "ann", Key: keys[i], Payload: p.make()}, fn); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("replay/"+p.name, func(b *testing.B) {
			g := guard(b, memstore.New(nil), nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := semel.Do(b.Context(), g, semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: p.make()}, fn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
