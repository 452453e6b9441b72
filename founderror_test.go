package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A store that cannot confirm the outcome of a record sends the record with an error. The
// caller's claim was not granted, so there is nothing to give back in the background.
func TestClaim_RecordComesWithError_IsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		if _, err := guard(t, st, nil).Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		claims := 0
		h := &hooks{Store: st, claim: func(ctx context.Context, p store.Proposal) (store.Found, error) {
			claims++
			f, err := st.Claim(ctx, p)
			return f, errors.Join(errBoom, err)
		}}
		_, err := guard(t, h, nil).Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		during := claims
		time.Sleep(time.Minute)
		if claims != during {
			t.Errorf("the claim was sent %d times, and %d times more after the call had ended", during, claims-during)
		}
	})
}
