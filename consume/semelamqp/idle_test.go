//go:build unix

package semelamqp_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp"
)

// cpu is the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

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
			share := 1.0
			for n := 0; n < 5 && share > 0.05; n++ { // work that another test has left may end in the first
				const wait = 2 * time.Second
				before := cpu(t)
				<-time.After(wait)
				share = float64(cpu(t)-before) / float64(wait)
			}
			over := 0
			if share > 0.05 {
				t.Errorf("%.1f %% of a core, want less than 5 %%", 100*share)
				over = 1
			}
			report(t, figure{Claim: "a consumer that waits " + name + " uses less than 5 % of a core", Trials: 1, Failures: over, Detail: fmt.Sprintf("%.2f %%", 100*share)})
		})
	}
}
