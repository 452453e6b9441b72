package semel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type graceKey struct{}

func TestGraceEndsAtItsTimeAndNotWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), graceKey{}, "trace"))
		leave()
		for _, asked := range []bool{false, true} { // whether Done is asked for must not matter
			c := newGrace(ctx, 10*time.Second)
			if asked {
				c.Done()
			}
			if c.Err() != nil || c.Value(graceKey{}) != "trace" {
				t.Errorf("asked %v: %v, value %v", asked, c.Err(), c.Value(graceKey{}))
			}
			if cause := context.Cause(c); cause != nil {
				t.Errorf("asked %v: it has the caller's cause, %v", asked, cause)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("asked %v: after its time %v", asked, c.Err())
			}
			<-c.Done()
		}
	})
}

func TestAStoppedGraceLetsGoOfWhatWasDerivedFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, asked := range []bool{false, true} {
			c := newGrace(t.Context(), time.Hour)
			if asked {
				c.Done()
			}
			child, cancel := context.WithCancel(c)
			defer cancel()
			c.stop()
			<-child.Done()
			if c.Err() == nil {
				t.Error("a stopped context has no error")
			}
		}
		c := newGrace(t.Context(), time.Millisecond)
		<-c.Done()
		c.stop() // after its end: harmless
	})
}

// A store that looks again and again is told, though its first look does not
// count.
func TestGraceCountsFromTheSecondLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGrace(t.Context(), 10*time.Second)
		defer c.stop()
		if c.Err() != nil {
			t.Fatal("it ended before it began")
		}
		time.Sleep(time.Minute)
		if c.Err() != nil {
			t.Error("it ended before it was asked again")
		}
		time.Sleep(10*time.Second - 1)
		if c.Err() != nil {
			t.Error("it ended early")
		}
		time.Sleep(time.Nanosecond)
		if !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Errorf("after its time %v", c.Err())
		}
	})
}
