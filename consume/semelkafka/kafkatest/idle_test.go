//go:build unix

package kafkatest

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
)

// It is not parallel, and so runs before those that are.
func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	if !evidence() {
		t.Skip("a measurement, whose result depends on the machine: set SEMEL_EVIDENCE=1")
	}
	c, seed := fake(t)
	b := open(t, seed)
	b.opt.PollWait = 0 // the default
	serve(t, consumer(t, guard(t, nil), nop, nil), b.source(t, nil))
	b.Publish(t, msg("k", ""))
	b.settled(t)
	consumetest.ReportIdle(t, "kfake, which is in the same process", "a consumer that waits for messages")
	c.Close()
	consumetest.ReportIdle(t, "kfake", "a consumer whose broker is down")
}
