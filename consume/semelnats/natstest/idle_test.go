//go:build unix

package natstest

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
)

func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	b := open(t, nil)
	b.opt.PollWait = 0 // the default
	serve(t, consumer(t, nop, nil), b.Connect(t))
	b.Publish(t, keyed("k"))
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
	consumetest.ReportIdle(t, "NATS JetStream, whose server is in the same process", "a consumer that waits for messages")
}
