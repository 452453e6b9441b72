//go:build unix

package semelamqp_test

import (
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/semelamqp"
)

// Waiting for messages, or for a missing queue, uses little CPU.
func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	for name, lost := range map[string]bool{"for messages": false, "for a queue that is gone": true} {
		t.Run(name, func(t *testing.T) {
			b := open(t, semelamqp.Classic)
			b.opt.Declare = semelamqp.DeclareCopies
			j := &journal{}
			serve(t, j.consumer(t, j.plain, consume.Options{}), b.connect(t))
			b.Publish(t, many(1)...)
			settled(t, b)
			if lost {
				if _, err := b.ch.QueueDelete(b.name, false, false, false); err != nil {
					t.Fatal(err)
				}
				until(t, "the loss noticed", func() bool { return j.saw(consume.EventReceiveFailed, nil) > 4 })
			}
			consumetest.ReportIdle(t, "RabbitMQ", "a consumer that waits "+name)
		})
	}
}
