package semelwatermill

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel/consume"
)

// The router delivers a rejected message again and again. Without a pause that took a whole
// processor, and wrote 20,000 lines a second into the log.
func TestHandler_RejectedMessage_IsTriedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		h, err := NoPublishHandler(guardOf(t, nil), consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.Reject()),
			func(*message.Message) error { return nil }, &consume.Options{Observe: func(context.Context, consume.Event) { tries.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		for ctx.Err() == nil && tries.Load() < 100 { // a broker that delivers at once
			m := message.NewMessage("u", message.Payload("x"))
			m.SetContext(ctx)
			if h(m) == nil {
				t.Fatal("the message was acked")
			}
		}
		if n := tries.Load(); n != 11 {
			t.Errorf("it was tried %d times in 10.5 s, want 11", n)
		}
	})
}
