package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// ringDown is keys of a service that answers only for the current one.
type ringDown struct{ keyRing }

func (r ringDown) Key(context.Context, string) ([]byte, error) { return nil, errBoom }

// A record that cannot be decrypted for now is no outage of the store: an unprotected run
// would repeat its effect.
func TestEncryption_KeyServiceDown_NoUnprotectedRun(t *testing.T) {
	st := memstore.New(nil)
	res, err := guard(t, st, withKeys("a")).Run(t.Context(), ann("k"), answer(canary))
	wantBody(t, res, err, canary, false)
	o := &semel.Options{Encryption: &encrypted.Cipher{Keys: ringDown{keyRing{"b"}}}, UnprotectedOnOutage: true, StoreTimeout: 50 * time.Millisecond}
	_, err = guard(t, st, o).Run(t.Context(), ann("k"), never(t))
	wantReason(t, err, semel.ErrUnavailable)
	if !errors.Is(err, errBoom) || store.Affects(err) != store.ExtentPart {
		t.Errorf("%v", err)
	}
}

// ringFailing is keys of which none encrypts, because of an error.
type ringFailing struct {
	keyRing
	err error
}

func (r ringFailing) TenantCurrent(context.Context, string) (string, []byte, error) {
	return "", nil, r.err
}

// Without a key to encrypt with, UnprotectedOnOutage runs only calls that have no record,
// and none of a tenant that was forgotten.
func TestEncryption_NoKeyToEncryptWith_NoUnprotectedRunOfRecordedCall(t *testing.T) {
	st := memstore.New(nil)
	res, err := guard(t, st, withKeys("a")).Run(t.Context(), ann("done"), answer(canary))
	wantBody(t, res, err, canary, false)
	failing := func(err error, ids ...string) *semel.Guard {
		keys := ringFailing{keyRing(ids), err}
		return guard(t, st, &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}, UnprotectedOnOutage: true})
	}

	outage := failing(errBoom, "a")
	res, err = outage.Run(t.Context(), ann("done"), never(t))
	wantBody(t, res, err, canary, true)
	res, err = outage.Run(t.Context(), ann("new"), answer("unprotected"))
	wantBody(t, res, err, "unprotected", false)

	forgotten := failing(fmt.Errorf("%w: the tenant was forgotten", encrypted.ErrUnknownKey), "b")
	for key, reason := range map[string]error{"done": store.ErrCorrupt, "new": semel.ErrUnavailable} {
		_, err := forgotten.Run(t.Context(), ann(key), never(t))
		wantReason(t, err, reason)
		if !errors.Is(err, encrypted.ErrUnknownKey) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// corrupt is a store whose records cannot be read, such as those of a later version.
type corrupt struct{ store.Store }

func (corrupt) Get(context.Context, store.Key) (store.Found, error) {
	return store.Found{}, store.ErrCorrupt
}

// A record that cannot be read may be that of a completed call.
func TestEncryption_NoKeyToEncryptWithAndUnreadableRecord_NoUnprotectedRun(t *testing.T) {
	keys := ringFailing{keyRing{"a"}, errBoom}
	g := guard(t, corrupt{memstore.New(nil)}, &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}, UnprotectedOnOutage: true})
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantReason(t, err, store.ErrCorrupt)
}
