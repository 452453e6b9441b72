package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// writer is a console over a store and an outbox, whose calls write messages.
type writer struct {
	*site
	box *outboxtest.Memory
}

func newWriter(t *testing.T, o console.Options) *writer {
	t.Helper()
	box := outboxtest.NewMemory()
	o.Outbox = box
	return &writer{siteOver(t, memstore.New(nil), o), box}
}

// charge runs a call that writes messages, and returns its record.
func (w *writer) charge(o *semel.Options, key string, messages ...outbox.Message) record {
	w.Helper()
	g, err := semel.New(w.store, o)
	if err != nil {
		w.Fatal(err)
	}
	var r record
	err = semel.Once(w.Context(), g, semel.Call{Operation: "charge", Tenant: "ann", Key: key, Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) error {
		r = named(x.Operation(), x.Tenant(), x.Key())
		return w.box.Put(ctx, messages...)
	})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// settle ends the first message of each order key.
func (w *writer) settle(kind outbox.ResultKind, text string) (positions []int64) {
	w.Helper()
	lanes, _, err := w.box.Lease(w.Context(), "p", time.Minute)
	if err != nil {
		w.Fatal(err)
	}
	taken, err := w.box.Take(w.Context(), lanes, nil, nil, 100)
	if err != nil {
		w.Fatal(err)
	}
	ended := map[int64]bool{}
	var results []outbox.Result
	for i := range taken {
		if positions = append(positions, taken[i].Position); !ended[taken[i].Order] {
			ended[taken[i].Order] = true
			results = append(results, outbox.Result{Taken: &taken[i], Kind: kind, Error: text, Delay: time.Hour})
		}
	}
	if err := w.box.Settle(w.Context(), results); err != nil {
		w.Fatal(err)
	}
	return positions
}

const itsMessages = `<h2 id="messages">Messages</h2>`

// An operator who looks at a payment sees what became of its messages, and gets from the
// page of a message back to the payment.
func TestRecord_HandlerWroteMessages_PageShowsWhatBecameOfThem(t *testing.T) {
	w := newWriter(t, console.Options{})
	mine := w.charge(nil, "order-17", outbox.Message{Topic: hostile, OrderKey: "ann", ID: "a1"}, outbox.Message{Topic: hostile, OrderKey: "ann", ID: "a2"})
	positions := w.settle(outbox.Failed, "503 from the webhook "+hostile)
	page := w.get(mine.path)
	w.want(page, http.StatusOK, itsMessages, "503 from the webhook &#34;&gt;&lt;script&gt;", "waits for an earlier message of its order key", fmt.Sprintf(`href="message?position=%d"`, positions[0]), `<span class="state held">held</span>`)
	if strings.Contains(page.body, "<script>alert") || strings.Count(page.body, `href="message?position=`) != 2 {
		t.Errorf("the page is\n%s", page.body)
	}
	hash := mine.key.Short()
	w.want(w.get(fmt.Sprintf("message?position=%d", positions[0])), http.StatusOK, `<a href="records?key=`+hash+`"><code>`+hash+`</code></a>`)
	w.want(w.get("records?key="+hash), http.StatusOK, ">order-17<")
}

func TestRecord_CallWithoutMessages_HasNoSuchSection(t *testing.T) {
	w := newWriter(t, console.Options{})
	other := w.charge(nil, "order-17", outbox.Message{Topic: "orders", ID: "a1"})
	none := w.charge(nil, "order-18")
	w.want(w.get(other.path), http.StatusOK, itsMessages)
	page := w.get(none.path)
	w.want(page, http.StatusOK, "What happened")
	if strings.Contains(page.body, itsMessages) || strings.Contains(page.body, "outbox did not answer") {
		t.Errorf("the page is\n%s", page.body)
	}
	if err := w.box.Put(t.Context(), outbox.Message{Topic: "orders", ID: "alone"}); err != nil {
		t.Fatal(err)
	}
	w.want(w.get("message?position=2"), http.StatusOK, "written outside of a handler")
}

// The two calls have the same hash in logs.
func TestRecord_OtherCallHasTheSameShortHash_PageShowsItsOwnMessages(t *testing.T) {
	w := newWriter(t, console.Options{})
	one := w.charge(nil, "order-19271", outbox.Message{Topic: "orders", ID: "a1", OrderKey: "first"})
	two := w.charge(nil, "order-115348", outbox.Message{Topic: "orders", ID: "a2", OrderKey: "second"})
	if one.key.Short() != two.key.Short() {
		t.Fatalf("%s and %s have other hashes: the test tests nothing", one.key.Short(), two.key.Short())
	}
	page := w.get(one.path)
	w.want(page, http.StatusOK, ">first<")
	if strings.Contains(page.body, ">second<") {
		t.Errorf("the page shows the message of another call:\n%s", page.body)
	}
}

func TestRecord_KeysAreHashed_PageShowsMessages(t *testing.T) {
	secret := make([]byte, 32)
	w := newWriter(t, console.Options{HashKeys: secret})
	mine := w.charge(&semel.Options{HashKeys: secret}, "order-17", outbox.Message{Topic: "orders", ID: "a1"})
	if mine.key != (store.Key{Operation: "charge", Tenant: "ann", Value: "order-17"}).Hashed(secret) {
		t.Fatalf("the key is %+v", mine.key)
	}
	w.want(w.get(mine.path), http.StatusOK, itsMessages)
}

func TestRecord_MoreMessagesThanAPageLists_NamesTheCommand(t *testing.T) {
	w := newWriter(t, console.Options{})
	messages := make([]outbox.Message, 101)
	for i := range messages {
		messages[i].Topic = "orders"
	}
	mine := w.charge(nil, "order-17", messages...)
	page := w.get(mine.path)
	w.want(page, http.StatusOK, "Only the first 100 are shown", "semel outbox list --call "+mine.key.Short())
	if n := strings.Count(page.body, `href="message?position=`); n != 100 {
		t.Errorf("%d messages", n)
	}
	if page := w.get(w.charge(nil, "order-18", messages[:100]...).path); strings.Contains(page.body, "Only the first") {
		t.Errorf("the page is\n%s", page.body)
	}
}

func TestRecord_OutboxDown_ShowsTheRest(t *testing.T) {
	s := newSite(t, console.Options{Outbox: boxDown{outboxtest.NewMemory()}})
	s.want(s.get(named("POST /payments", "ann", "parked").path), http.StatusOK, "What happened", "The outbox did not answer, so the messages of this call are not shown: shard b: connection refused")
}

// boxHangs is an outbox of which the database gives no answer.
type boxHangs struct {
	*outboxtest.Memory
}

func (boxHangs) ListCall(ctx context.Context, _ string, _ int) ([]outbox.Entry, error) {
	return nil, hang(ctx)
}

func (boxHangs) Stats(ctx context.Context) (outbox.Stats, error) { return outbox.Stats{}, hang(ctx) }

// hang waits until ctx ends, for at most a minute.
func hang(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return nil
	}
}

func TestRecord_OutboxHangs_ShowsTheRest(t *testing.T) {
	path := "/" + named("POST /payments", "ann", "parked").path
	wantWithoutOutbox(t, path, &console.Options{Operator: eve, Outbox: boxHangs{outboxtest.NewMemory()}}, "It did not happen")
}

func TestOverview_OutboxHangs_ShowsCallsInDoubt(t *testing.T) {
	wantWithoutOutbox(t, "/", &console.Options{Outbox: boxHangs{outboxtest.NewMemory()}}, ">parked<")
}

// wantWithoutOutbox wants a page within some 5 s, with a text and a note about the outbox.
func wantWithoutOutbox(t *testing.T, path string, o *console.Options, text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		(&site{T: t, store: st}).seed()
		began, w := time.Now(), httptest.NewRecorder()
		consoleOver(t, st, o).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		page := w.Body.String()
		if took := time.Since(began); !strings.Contains(page, text) || !strings.Contains(page, "The outbox did not answer") || took > 6*time.Second {
			t.Errorf("after %v: %d %s; want %q", took, w.Code, page, text)
		}
	})
}

// storeHangs is a store of which the database gives no answer.
type storeHangs struct{ *memstore.Store }

func (storeHangs) Get(ctx context.Context, _ store.Key) (store.Found, error) {
	return store.Found{}, hang(ctx)
}

func consoleOver(t *testing.T, st store.Store, o *console.Options) *console.Console {
	t.Helper()
	c, err := console.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Otherwise the page would wait without an end, and so would the stream of an open page, which
// then looks as if it were up to date.
func TestRecord_StoreHangs_503AndStreamSaysThatItChanged(t *testing.T) {
	for path, want := range map[string]string{"": "The store did not answer", "live/": "event: changed"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &firstWrite{ResponseRecorder: httptest.NewRecorder(), then: cancel}
			began := time.Now()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+path+named("POST /payments", "ann", "parked").path+"&shown=before", nil)
			consoleOver(t, storeHangs{memstore.New(nil)}, nil).ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), want) || path == "" && w.Code != http.StatusServiceUnavailable || time.Since(began) > 21*time.Second {
				t.Errorf("%s after %v: %d %s, want %q", path, time.Since(began), w.Code, w.Body, want)
			}
		})
	}
}

// firstWrite calls then after the first part of an answer.
type firstWrite struct {
	*httptest.ResponseRecorder
	then func()
}

func (w *firstWrite) Write(b []byte) (int, error) {
	defer w.then()
	return w.ResponseRecorder.Write(b)
}
