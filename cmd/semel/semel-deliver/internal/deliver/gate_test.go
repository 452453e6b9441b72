package deliver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// entered starts an enter, and returns a channel that gives its leave.
func entered(ctx context.Context, g *gate, stop <-chan struct{}) <-chan func() {
	c := make(chan func(), 1)
	go func() {
		if _, leave, ok := g.enter(ctx, stop); ok {
			c <- leave
		} else {
			close(c)
		}
	}()
	return c
}

func quiet(bool, string) {}

// returned reports whether an enter has returned.
func returned(c <-chan func()) bool {
	synctest.Wait()
	return len(c) > 0
}

func TestGate_Paused_OneTriesAndOthersWaitForItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Minute, quiet)
		if !returned(entered(t.Context(), g, nil)) {
			t.Fatal("an open gate does not let in")
		}
		g.pause(time.Now(), time.Second, "busy")
		a, b := entered(t.Context(), g, nil), entered(t.Context(), g, nil)
		time.Sleep(999 * time.Millisecond)
		if returned(a) || returned(b) {
			t.Fatal("a message does not wait for the end of the pause")
		}
		time.Sleep(time.Millisecond)
		if returned(a) == returned(b) {
			t.Fatal("after the pause not exactly one message tries")
		}
		if returned(b) {
			a, b = b, a
		}
		g.pause(time.Now(), 0, "busy") // its answer
		(<-a)()
		time.Sleep(10 * time.Minute) // of the pause, and more
		if !returned(b) {
			t.Fatal("after the second pause no message tries")
		}
		c := entered(t.Context(), g, nil)
		time.Sleep(time.Hour)
		if returned(c) {
			t.Fatal("a message does not wait for the one that tries")
		}
		g.answered(time.Now())
		if !returned(c) {
			t.Fatal("the answer does not let the others in")
		}
	})
}

// The answer to a request that was sent before the pause says nothing about the service as it is
// now: a service that has too much to do still answers the requests that it has taken.
func TestGate_AnswerToOlderRequest_DoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		g := newGate(time.Minute, func(bool, string) { told++ })
		older := time.Now()
		time.Sleep(time.Millisecond)
		g.pause(time.Now(), 0, "busy")
		g.pause(time.Now(), 30*time.Second, "busy")
		g.answered(older)
		a := entered(t.Context(), g, nil)
		time.Sleep(30*time.Second - time.Nanosecond)
		if returned(a) || told != 1 {
			t.Fatalf("a request that was sent before the pause has ended it; told %d times", told)
		}
		time.Sleep(time.Nanosecond)
		if !returned(a) {
			t.Fatal("after the pause no message tries")
		}
		g.pause(time.Now(), 0, "busy") // its answer: the second failure
		(<-a)()
		g.answered(older)
		b := entered(t.Context(), g, nil)
		time.Sleep(2*firstPause - time.Nanosecond)
		if returned(b) {
			t.Fatal("the second pause is not longer than the first")
		}
		time.Sleep(time.Nanosecond)
		g.answered(time.Now())
		if g.paused() || told != 2 {
			t.Errorf("the answer to a later request does not open; told %d times", told)
		}
	})
}

// A message that tries, but sends nothing, gives its turn to the next one.
func TestGate_TryWithoutAnswer_NextTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Minute, quiet)
		g.pause(time.Now(), time.Second, "busy")
		time.Sleep(2 * time.Second)
		_, leave, ok := g.enter(t.Context(), nil)
		if !ok {
			t.Fatal("no message tries")
		}
		next := entered(t.Context(), g, nil)
		if returned(next) {
			t.Fatal("two messages try")
		}
		leave()
		if !returned(next) {
			t.Fatal("the next message does not try")
		}
	})
}

// Requests that were under way when the service went away make one failure, not many.
func TestGate_ManyFailuresAtOnce_OnePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Hour, quiet)
		older := time.Now()
		for range 64 {
			time.Sleep(time.Millisecond)
			g.pause(older, 0, "no connection")
		}
		time.Sleep(firstPause)
		if !returned(entered(t.Context(), g, nil)) {
			t.Error("the pause is longer than the first")
		}
		g.pause(time.Now(), 24*time.Hour, "busy")
		c := entered(t.Context(), g, nil)
		time.Sleep(time.Hour)
		g.leave()
		if !returned(c) {
			t.Error("the pause is longer than the longest")
		}
	})
}

// Requests that hang from before the pause fail one after the other, while the service answers each
// message that tries.
func TestGate_OlderRequestsFailLater_AnswerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(30*time.Second, quiet)
		older := time.Now()
		time.Sleep(time.Second)
		g.pause(older, 0, "timeout") // the first of them
		_, leave, ok := g.enter(t.Context(), nil)
		if !ok {
			t.Fatal("no message tries")
		}
		entered := time.Now()
		time.Sleep(time.Second)
		g.pause(older, 0, "timeout")
		g.answered(entered)
		leave()
		if g.paused() {
			t.Fatal("the answer does not open after the failure of an older request")
		}
		g.pause(older, 0, "timeout")
		g.pause(older, time.Minute, "busy")
		if g.paused() {
			t.Error("the failure of an older request closes the gate after an answer")
		}
	})
}

// The service names a time in its answer to a request from before the pause.
func TestGate_OlderRequestIsToldTime_PauseIsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(time.Minute, quiet)
		older := time.Now()
		time.Sleep(time.Second)
		g.pause(older, 0, "busy")
		g.pause(older, 10*time.Second, "busy")
		c := entered(t.Context(), g, nil)
		time.Sleep(10*time.Second - time.Nanosecond)
		if returned(c) {
			t.Error("a message tries before the time that the service has named")
		}
		time.Sleep(time.Nanosecond)
		if !returned(c) {
			t.Error("no message tries at the time that the service has named")
		}
	})
}

func TestGate_StopOrEnd_LetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := ""
		g := newGate(time.Minute, func(open bool, reason string) { told = reason })
		g.pause(time.Now(), time.Minute, "busy")
		stop := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		a, b := entered(ctx, g, nil), entered(t.Context(), g, stop)
		cancel()
		close(stop)
		if _, ok := <-a; ok {
			t.Error("the context's end lets a message in")
		}
		if _, ok := <-b; ok {
			t.Error("the stop lets a message in")
		}
		if told != "busy" || !g.paused() {
			t.Errorf("told %q", told)
		}
	})
}
