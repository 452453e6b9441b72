//go:build unix

package consumetest

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// ReportIdle measures how much of a core this process uses while a consumer waits. It logs
// the share as a figure for the evidence, and fails t above 5 %. The text who names the
// consumer in that figure.
func ReportIdle(t *testing.T, where, who string) {
	t.Helper()
	const most, wait = 0.05, 2 * time.Second
	share := 1.0
	for n := 0; n < 5 && share > most; n++ { // work that another test has left may end in the first
		before := processorTime(t)
		<-time.After(wait)
		share = float64(processorTime(t)-before) / float64(wait)
	}
	f := &figure{Claim: who + " uses less than 5 % of a core", Where: where, Trials: 1, Detail: fmt.Sprintf("%.2f %%", 100*share)}
	if share > most {
		t.Errorf("%s uses %.1f %% of a core; it must be less than 5 %%", who, 100*share)
		f.Failures = 1
	}
	f.report(t)
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
