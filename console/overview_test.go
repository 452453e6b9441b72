package console_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
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
	s.want(s.get(""), http.StatusOK, "100&#43;", `<span class="state stuck">0&#43;</span>`, "The search was ended before it had read everything")
	if st.listed > 1200 {
		t.Errorf("one look has read %d records in doubt", st.listed)
	}
}

// The calls that run, and those that failed, are one click away. They are not counted, because
// that would read the whole store.
func TestOverview_EachKindOfTrouble_HasLink(t *testing.T) {
	st := &counted{Store: memstore.New(nil)}
	empty := serve(t, st, console.Options{})
	empty.want(empty.get(""), http.StatusOK, `href="#doubt"><strong>In doubt</strong> none<`, `href="#stuck"><strong>Stuck</strong> none<`)
	s := siteOver(t, st.Store, console.Options{})
	s.seed()
	empty.want(empty.get(""), http.StatusOK, `href="#doubt"><strong>In doubt</strong> <span class="state in-doubt">3</span>`, `href="#stuck"><strong>Stuck</strong> <span class="state stuck">1</span>`,
		`<h2 id="doubt">`, `<h2 id="stuck">`, `href="records?state=processing"><strong>In flight</strong>`, `href="records?state=failed"><strong>Failed</strong>`)
	if st.listed > 8 { // each of the four in doubt for each of the two lists
		t.Errorf("two looks have read %d records, and four are in doubt", st.listed)
	}
}

// The store looks for the records of a key, so that a search among many does not read them all.
func TestRecords_SearchAndExpired_StoreFindsThem(t *testing.T) {
	st := &counted{Store: memstore.New(nil)}
	s := siteOver(t, st.Store, console.Options{})
	s.seed()
	s = serve(t, st, console.Options{})
	for path, want := range map[string]int{
		"records?key=parked": 1, "records?key=" + named("POST /payments", "ann", "parked").key.Short(): 1, "records?key=nobody": 0, "records?state=expired": 0,
	} {
		st.listed = 0
		s.want(s.get(path), http.StatusOK)
		if st.listed != want {
			t.Errorf("%s: the store gave %d records, want %d", path, st.listed, want)
		}
	}
}

// unlisted is a store of which a record in doubt cannot be read.
type unlisted struct{ *memstore.Store }

func (u unlisted) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for found, err := range u.Store.List(ctx, f) {
			if !yield(found, err) {
				return
			}
		}
		yield(store.Found{}, errUnreadable)
	}
}

// Nobody knows whether a record that cannot be read is a saga, so no list may say that there is
// none. The number of such records is said once.
func TestOverview_RecordCannotBeRead_SagasMayBeStuck(t *testing.T) {
	s := serve(t, unlisted{memstore.New(nil)}, console.Options{})
	page := s.get("")
	s.want(page, http.StatusOK, `<strong>In doubt</strong> <span class="state in-doubt">0&#43;</span>`, `<strong>Stuck</strong> <span class="state stuck">0&#43;</span>`,
		`Stuck sagas <span class="count">0&#43;</span>`, "1 records cannot be read")
	for _, wrong := range []string{"</strong> none", "No saga is stuck", "No call is in doubt"} {
		if strings.Contains(page.body, wrong) {
			t.Errorf("the page says %q", wrong)
		}
	}
	if n := strings.Count(page.body, "cannot be read"); n != 1 {
		t.Errorf("the page says %d times that a record cannot be read", n)
	}
}
