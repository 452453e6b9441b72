package console_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// counted is a store that counts the records that its lists give.
type counted struct {
	*memstore.Store
	listed int
}

func (c *counted) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for found, err := range c.Store.List(ctx, f) {
			c.listed++
			if !yield(found, err) {
				return
			}
		}
	}
}

// An outage can leave any number of calls in doubt. Each open page reads the overview every 2 s,
// so a look must not read them all to find out that no saga is stuck.
func TestOverview_ManyCallsInDoubt_ReadsBoundedAndSaysSo(t *testing.T) {
	st := &counted{Store: memstore.New(nil)}
	for i := range 5000 {
		p := store.Proposal{
			Key: store.Key{Operation: "pay", Tenant: "ann", Value: fmt.Sprint(i)}, State: store.Processing, Policy: store.Park,
			Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute,
		}
		f, err := st.Claim(t.Context(), p)
		if err == nil {
			err = st.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Unknown, Attempt: 1, Error: "lost"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, st, console.Options{})
	s.want(s.get(""), http.StatusOK, "100+", "The search was ended before it had read everything")
	if st.listed > 1200 {
		t.Errorf("one look has read %d records in doubt", st.listed)
	}
}
