package semelamqp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp"
)

// A Source that serves again goes on with what its first Serve did not finish,
// though the broker has sent ahead what is behind that.
func TestOrderIsKeptFromOneServeToTheNext(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			b.opt.Prefetch = 20
			const n = 20
			ms := many(n)
			want := ""
			for i := range ms {
				ms[i].OrderKey = "lane"
				want += fmt.Sprintf("k%d ", i)
			}
			b.Publish(t, ms...)
			c := b.connect(t)
			j := &journal{}
			ctx, cancel := context.WithCancel(t.Context())
			err := j.consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
				cancel()
				return errDead
			}, consume.Options{Concurrency: 1, InFlight: 2}).Serve(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			serve(t, j.consumer(t, j.plain, consume.Options{}), c)
			settled(t, b)
			j.once(t, n)
			if got := strings.Join(j.order, " ") + " "; got != want {
				t.Errorf("they ran in the order %s", got)
			}
		})
	}
}
