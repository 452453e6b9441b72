package consume_test

import (
	"strconv"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store/memstore"
)

// BenchmarkServe measures what Serve adds to the Guard, without a broker and with
// the store in memory.
func BenchmarkServe(b *testing.B) {
	for _, c := range []struct {
		name  string
		every int // one message in so many is a duplicate
	}{{"new", 0}, {"half are duplicates", 2}} {
		b.Run(c.name, func(b *testing.B) {
			s := newSource()
			s.in = make(chan *consume.Message, b.N)
			for i := range b.N {
				if c.every > 0 {
					i /= c.every
				}
				s.in <- keyed(strconv.Itoa(i))
			}
			done := make(chan struct{}, b.N)
			s.ack = func() error {
				done <- struct{}{}
				return nil
			}
			g := newGuard(b, memstore.New(nil), nil)
			b.ReportAllocs()
			b.ResetTimer()
			r := serve(b, newConsumer(b, g, func(ctxt, *semel.Execution, *consume.Message) error { return nil }, consume.Options{}), s)
			for range b.N {
				<-done
			}
			b.StopTimer()
			r.end()
		})
	}
}

func BenchmarkHandle(b *testing.B) {
	c := newConsumer(b, newGuard(b, memstore.New(nil), nil), func(ctxt, *semel.Execution, *consume.Message) error { return nil }, consume.Options{})
	b.ReportAllocs()
	for i := range b.N {
		c.Handle(b.Context(), keyed(strconv.Itoa(i)))
	}
}
