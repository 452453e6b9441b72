package console

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// mostPageTime is how long a page of many records may take, as the median of some readings.
const (
	mostPageTime = 300 * time.Millisecond
	readings     = 10
)

// receiver is a store that takes records as they are.
type receiver interface {
	store.Store
	store.Receiver
}

// recordAt is one of many records. Few of them are not completed, so that a list of another
// state has to look for its records.
func recordAt(i int, now time.Time) store.Record {
	r := store.Record{
		Key:   store.Key{Operation: fmt.Sprint("POST /payments/", i%5), Tenant: fmt.Sprint("acct-", i%50), Value: fmt.Sprintf("%08x-40d5-43dd-bc93-6894a57f9324", uint32(i)*2654435761)},
		State: store.Completed, Fence: 1, Owner: store.Owner{1}, Holder: "payments-7d9f/1", Attempt: 1, Format: 1,
		Fingerprint: store.Fingerprint{Alg: "semelhttp/1", Sum: "00"}, Created: now.Add(-time.Hour), Updated: now.Add(-time.Minute),
	}
	if i%2 == 0 {
		r.Key.Value = fmt.Sprint("order-", i)
	}
	switch i % 1000 {
	case 100, 200, 300, 400, 500, 600, 700, 800, 900:
		r.State, r.LastError = store.Unknown, "POST https://bank.example/charges: context deadline exceeded"
		if i%10_000 == 100 {
			r.Key.Operation, r.Fingerprint = saga.Key("order", "", "").Operation, store.Fingerprint{}
		}
	case 1:
		r.State, r.LastError = store.Failed, "card_declined: the bank refuses this card"
	case 2:
		r.State, r.Until = store.Processing, now.Add(time.Hour)
	case 3:
		r.State, r.Until = store.Released, now
	case 4:
		r.State, r.Until, r.Attempt = store.Started, now.Add(time.Hour), 0
	}
	if r.State.Terminal() {
		r.Completed, r.Outcome = r.Updated, store.Outcome{Code: 201, Body: []byte(`{"payment":"p-4711","cents":4200}`)}
	}
	if r.State.Terminal() || r.State == store.Released {
		r.Expires = now.Add(24 * time.Hour)
	}
	if i%1000 == 5 {
		r.Expires = now.Add(-time.Second)
	}
	return r
}

// fill writes many records.
func fill(t *testing.T, st receiver, count int) {
	t.Helper()
	now, next := time.Now().UTC().Truncate(time.Microsecond), make(chan int)
	var writers sync.WaitGroup
	for range 32 {
		writers.Go(func() {
			for i := range next {
				r := recordAt(i, now)
				if found, err := st.Receive(t.Context(), r, nil); err != nil || !found.Won {
					t.Errorf("%v: %+v, %v", r.Key, found, err)
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	writers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// pageTimes reads a page some times, and returns how long each took, the quickest first.
func pageTimes(t *testing.T, page, want string) (times [readings]time.Duration) {
	t.Helper()
	for i := range times {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		times[i] = time.Since(begun)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Fatalf("%s: %d, %v, without %q in\n%s", page, answer.StatusCode, err, want, body)
		}
	}
	slices.Sort(times[:])
	return times
}

// listed is a page that lists records.
type listed struct {
	name, path, want string
}

// pagesOfMany are pages with some of count records. If a list is full, the console can stop
// to read; it reads them all for a list that is not, and for a search.
func pagesOfMany(count int) []listed {
	last, ordered := recordAt(count-1, time.Now()).Key, recordAt(count-2, time.Now()).Key
	return []listed{
		{"overview", "", "In doubt"},
		{"all records", "records", "Only the first 100"},
		{"in doubt", "records?state=unknown", "in doubt"},
		{"failed", "records?state=failed", "card_declined"},
		{"running", "records?state=processing", "running"},
		{"released", "records?state=released", "released"},
		{"reserved", "records?state=started", "reserved"},
		{"completed", "records?state=completed", "Only the first 100"},
		{"expired", "records?state=expired", "expired"},
		{"of a tenant", "records?tenant=acct-7", "Only the first 100"},
		{"failed, of an operation", "records?state=failed&operation=" + url.QueryEscape("POST /payments/1"), "card_declined"},
		{"search by key", "records?key=" + last.Value, last.Short()},
		{"search by a key that has an order", "records?key=" + ordered.Value, ordered.Short()},
		{"search by operation, tenant and key", "records?" + url.Values{"operation": {last.Operation}, "tenant": {last.Tenant}, "key": {last.Value}}.Encode(), last.Short()},
		{"search by hash", "records?key=" + last.Short(), last.Value},
		{"search for a key that is not there", "records?key=nobody", "No record fits"},
	}
}

// An operator who looks for one record among many waits for no page. The times of a machine
// that has other work to do are reported, and not judged.
func TestCampaign_ManyRecords_EachPageIsQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 10,000 records into each store, and 100,000 with SEMEL_EVIDENCE=1")
	}
	for name, open := range map[string]func(t *testing.T) (receiver, func()){
		"sqlite":   func(t *testing.T) (receiver, func()) { return stores.SQLite(t) },
		"postgres": func(t *testing.T) (receiver, func()) { return stores.Postgres(t, pgstore.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			st, end := open(t)
			t.Cleanup(end)
			count := 10_000
			if figure.Long() {
				count = 100_000
			}
			fill(t, st, count)
			pages, err := console.New(st, &console.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			address := serve(t, pages).URL + "/"
			for _, page := range pagesOfMany(count) {
				times := pageTimes(t, address+page.path, page.want)
				median := times[readings/2]
				f := figure.Figure{
					Claim: fmt.Sprintf("a page of the console over %d records takes at most 300 ms", count), Where: name + ", " + page.name, Trials: readings,
					Detail: fmt.Sprintf("median %v, slowest %v", median.Round(100*time.Microsecond), times[readings-1].Round(100*time.Microsecond)),
				}
				for _, took := range times {
					if took > mostPageTime {
						f.Failures++
					}
				}
				figure.Report(t, f)
				if median > mostPageTime && figure.Long() {
					t.Errorf("%s: %s", page.name, f.Detail)
				}
			}
		})
	}
}
