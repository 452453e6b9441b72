package semelamqp_test

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
)

// An operator limits the length of the queues of copies while Serve runs. By default such a
// queue would confirm each letter, and drop an earlier one.
func TestForward_PolicyLimitsQueueOfCopies_NoLetterIsLost(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			b := open(t, kind)
			j := &journal{}
			serve(t, j.consumer(t, bad, consume.Options{}), b.connect(t))
			b.Publish(t, keyed("first"))
			settled(t, b)
			policy := func(expr string) {
				t.Helper()
				if _, err := b.server.Eval(expr); err != nil {
					t.Fatal(err)
				}
			}
			set := fmt.Sprintf(`ok = rabbit_policy:set(<<"/">>, <<%q>>, <<%q>>, [{<<"max-length">>, 1}], 0, <<"queues">>, <<"guest">>)`, b.name, "^"+b.name+"[.]dead-letters$")
			clear := fmt.Sprintf(`ok = rabbit_policy:delete(<<"/">>, <<%q>>, <<"guest">>)`, b.name)
			policy(set)
			b.Publish(t, many(20)...)
			refused := func() bool { return j.saw(consume.EventSettleFailed, nil) > 0 }
			until(t, "a letter refused, or all messages acked", func() bool { return refused() || b.Unsettled(t) == 0 })
			policy(clear)
			settled(t, b)
			if n := len(b.Copies(t, driver.DeadLetter)); n != 21 {
				t.Errorf("%d letters are left, want 21", n)
			}
			if kind == semelamqp.Classic && !refused() { // a quorum queue takes some more than its limit
				t.Error("no letter was refused")
			}
		})
	}
}
