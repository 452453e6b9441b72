package outboxtest_test

import (
	"testing"

	"github.com/semel-go/semel/outbox/outboxtest"
)

func TestConformance(t *testing.T) {
	outboxtest.Run(t, outboxtest.Harness{
		Open: func(testing.TB) (outboxtest.Outbox, func(testing.TB) outboxtest.Tx) {
			m := outboxtest.NewMemory()
			return m, func(testing.TB) outboxtest.Tx { return m.Begin() }
		},
	})
}
