//go:build unix

package natstest

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// cpu is the processor time that this process has used, the server's included.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	b := open(t, nil)
	b.opt.PollWait = 0 // the default
	serve(t, consumer(t, nop, nil), b.Connect(t))
	b.Publish(t, keyed("k"))
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
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
	report(t, figure{Claim: "a consumer that waits for messages uses less than 5 % of a core", Trials: 1, Failures: over, Detail: fmt.Sprintf("%.2f %%, the server in the same process included", 100*share)})
}
