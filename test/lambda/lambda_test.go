//go:build unix

package lambda

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A time-out in Powertools left a record in progress, and duplicates failed until it
// expired (powertools-lambda-python#4759). Here the lease of 10 minutes ends with the
// invocation.
func TestTimeout_HandlerIgnoresIt_NextInvocationRunsAtOnce(t *testing.T) {
	folder := t.TempDir()
	first, second := newSandbox(t, "pay", folder, "10m"), newSandbox(t, "pay", folder, "10m")
	for try := 0; len(runs(t, folder)) == 0; try++ { // on a busy machine a handler may not begin in time
		if _, err := first.invoke(fmt.Sprint("first", try), payment{ID: "a", Cents: 1, Mode: "deaf", Millis: 60_000}, time.Second, 0); !errors.Is(err, errTimeout) {
			t.Fatalf("the first invocation ended with %v; want the time-out", err)
		}
	}
	timedOut := 0 // an attempt before it may have ended between its claim and its handler
	if _, err := fmt.Sscanf(runs(t, folder)[0], "a %d ", &timedOut); err != nil {
		t.Fatal(err)
	}
	body, err := second.invoke("2", payment{ID: "a", Cents: 1}, 30*time.Second, 0)
	if want := fmt.Sprintf(`"a %d `, timedOut+1); err != nil || !strings.HasPrefix(string(body), want) {
		t.Errorf("after the time-out: %s, %v; want attempt %d", body, err, timedOut+1)
	}
	if n := len(runs(t, folder)); n != 2 {
		t.Errorf("%d runs", n)
	}
}

// A process that is frozen in its handler renews no lease: another one takes over, and
// the first cannot store its outcome. One that is frozen between two invocations holds
// none, so a duplicate elsewhere gets the result at once.
func TestSandboxFrozen_LosesLeaseOnlyWithinInvocation(t *testing.T) {
	folder := t.TempDir()
	frozen, other := newSandbox(t, "pay", folder, "1s"), newSandbox(t, "pay", folder, "1s")
	started := make(chan error, 1)
	go func() {
		_, err := frozen.invoke("1", payment{ID: "a", Cents: 1, Millis: 60_000}, time.Minute, 0)
		started <- err
	}()
	for limit := time.After(time.Minute); len(runs(t, folder)) == 0; {
		select {
		case err := <-started:
			t.Fatalf("the invocation ended before it was frozen: %v", err)
		case <-limit:
			t.Fatal("the handler does not begin")
		case <-time.After(5 * time.Millisecond):
		}
	}
	frozen.signal(syscall.SIGSTOP)
	second, err := other.invoke("2", payment{ID: "a", Cents: 1}, time.Minute, 0)
	for try := 0; err != nil && try < 5; try++ { // a busy machine may stop the take-over for longer than its lease, too
		second, err = other.invoke(fmt.Sprint("2.", try), payment{ID: "a", Cents: 1}, time.Minute, 0)
	}
	if err != nil {
		t.Fatalf("the take-over: %v", err)
	}
	frozen.signal(syscall.SIGCONT)
	if err := <-started; err == nil || !strings.Contains(err.Error(), "lease lost") {
		t.Errorf("the frozen invocation ended with %v; want the lost lease", err)
	}

	frozen.signal(syscall.SIGSTOP) // between two invocations
	if again, err := other.invoke("3", payment{ID: "a", Cents: 1}, time.Minute, 0); err != nil || string(again) != string(second) {
		t.Errorf("a duplicate got %s, %v; want %s", again, err, second)
	}
	frozen.signal(syscall.SIGCONT)
	if again, err := frozen.invoke("4", payment{ID: "a", Cents: 1}, time.Minute, 0); err != nil || string(again) != string(second) {
		t.Errorf("the process that was frozen got %s, %v; want %s", again, err, second)
	}
}

func TestProcesses_KilledOrTimedOut_OneOutcomePerKey(t *testing.T) {
	folder := t.TempDir()
	var boxes []box
	for range 3 {
		boxes = append(boxes, newSandbox(t, "pay", folder, "1s"))
	}
	payThroughDeaths(t, "Runtime API of the test", folder, boxes...)
}

func TestBatches_ProcessesKilled_EachBookedOnceInOrder(t *testing.T) {
	folder := t.TempDir()
	bookThroughDeaths(t, "Runtime API of the test", folder, newSandbox(t, "batch", folder, "1s"), newSandbox(t, "batch", folder, "1s"))
}
