package storeurl

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store/encrypted"
)

// usedKeys counts how often they were used.
type usedKeys struct {
	encrypted.Keys
	used int
}

func (k *usedKeys) Current(context.Context) (string, []byte, error) {
	k.used++
	return "id", nil, nil
}

// A process without requests notices a changed file, too, until its store is closed.
func TestLook_NoRequests_UsesKeysUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		k := &usedKeys{}
		go look(ctx, k)
		time.Sleep(2*lookEvery + lookEvery/2)
		synctest.Wait()
		if k.used != 2 {
			t.Errorf("the keys were used %d times, want 2", k.used)
		}
		stop()
		time.Sleep(10 * lookEvery)
		if k.used != 2 {
			t.Errorf("after the end they were used %d times", k.used)
		}
	})
}
