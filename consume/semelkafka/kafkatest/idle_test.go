//go:build unix

package kafkatest

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// cpu is the processor time that this process has used, the broker's included.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

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
	idle(t, "a consumer that waits for messages")
	c.Close()
	idle(t, "a consumer whose broker is down")
}

func idle(t *testing.T, who string) {
	t.Helper()
	share := 1.0
	for n := 0; n < 5 && share > 0.05; n++ { // work that another test has left may end in the first
		const wait = 2 * time.Second
		before := cpu(t)
		<-time.After(wait)
		share = float64(cpu(t)-before) / float64(wait)
	}
	over := 0
	if share > 0.05 {
		t.Errorf("%s: %.1f %% of a core, want less than 5 %%", who, 100*share)
		over = 1
	}
	report(t, figure{Claim: who + " uses less than 5 % of a core", Where: "kfake", Trials: 1, Failures: over, Detail: fmt.Sprintf("%.2f %%, the broker in the same process included", 100*share)})
}
