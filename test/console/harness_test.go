package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/console/rates"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

// waitLimit is how long a test waits for what a page shows.
const waitLimit = time.Minute

var errMissing = errors.New("a program is missing")

// site is a console over a file of SQLite with a record of each kind.
type site struct {
	store *sqlitestore.Store
	box   *sqliteoutbox.Outbox
	pages http.Handler // below /ops/
	url   string
}

func newSite(t *testing.T) *site {
	t.Helper()
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	box, err := sqliteoutbox.New(st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	s := &site{store: st, box: box}
	s.seedCalls(t)
	s.stuckOrder(t, "order-1842")
	s.seedOutbox(t)
	pages, err := console.New(st, &console.Options{
		Operator: func(*http.Request) string { return "eve" }, Sagas: []string{"order"}, Outbox: box, Rates: s.readings(t), ShowBodies: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/", http.StripPrefix("/ops", pages))
	s.pages = mux
	s.url = serve(t, mux).URL + "/ops/"
	return s
}

// serve starts a server, until the end of the test.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // the streams of open pages
	return server
}

// answers are those of a process that a client asks.
type answers func() string

func (f answers) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, err := w.WriteString(f())
	return w.Result(), err
}

// readings are the rates of a process in the last hour.
func (s *site) readings(t *testing.T) (r *rates.Recorder) {
	t.Helper()
	executed, replayed, conflicts, n := 0, 0, 0, 0
	process := &http.Client{Transport: answers(func() string {
		n++
		executed += 40 + 12*(n/40%5) + n%7
		replayed += 3 + n%4
		if n > 200 && n < 230 {
			replayed, conflicts = replayed+45, conflicts+6 // a client repeats what it got no answer for
		}
		return fmt.Sprintf("semel_calls_total{outcome=\"executed\"} %d\nsemel_calls_total{outcome=\"replayed\"} %d\nsemel_calls_total{outcome=\"refused_in_progress\"} %d\n", executed, replayed, conflicts)
	})}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = rates.New(rates.Options{URLs: []string{"http://10.0.0.7:9090/metrics"}, Client: process}); err != nil {
			t.Fatal(err)
		}
		for range 361 {
			r.Read(t.Context())
			time.Sleep(10 * time.Second)
		}
	})
	return r
}

func (s *site) seedCalls(t *testing.T) {
	t.Helper()
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park, Holder: "payments-7d9f/1"})
	if err != nil {
		t.Fatal(err)
	}
	type end func() (store.Outcome, error)
	lost := func() (store.Outcome, error) {
		return store.Outcome{}, errors.New("POST https://bank.example/charges: context deadline exceeded")
	}
	declined := func() (store.Outcome, error) {
		return store.Outcome{}, semel.Final(errors.New("card_declined: the bank refuses this card"))
	}
	paid := func() (store.Outcome, error) {
		return store.Outcome{Code: 201, Header: []store.Header{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(`{"payment":"p-4711","cents":4200}`)}, nil
	}
	for _, c := range []struct {
		tenant, key string
		end         end
	}{
		{"acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324", lost}, {"acct-117", "invoice-2026-1107", lost}, {"acct-301", "order-1841", declined},
		{"acct-301", "order-1840", paid}, {"acct-117", "order-1839", paid}, {"acct-208", "order-1838", paid},
	} {
		_, _ = g.Run(t.Context(), semel.Call{Operation: "POST /payments", Tenant: c.tenant, Key: c.key, Payload: semel.Digest("semelhttp/1", make([]byte, 32))},
			func(context.Context, *semel.Execution) (store.Outcome, error) { return c.end() })
	}
	again, err := semel.New(s.store, &semel.Options{Holder: "payments-7d9f4b8c6d-x2k9q/1 POST /payments/refunds"})
	if err != nil {
		t.Fatal(err)
	}
	for range store.MaxFormerOwners + 1 {
		_, _ = again.Run(t.Context(), semel.Call{Operation: "POST /refunds", Tenant: "acct-117", Key: "refund-1106", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) (store.Outcome, error) { return lost() })
	}
}

// seedOutbox writes messages, of which the first of an order key cannot be sent.
func (s *site) seedOutbox(t *testing.T) {
	t.Helper()
	shop, err := sqlitestore.NewAtomic(s.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, account := range []string{"acct-117", "acct-117", "acct-208"} {
		call := semel.Call{Operation: "notify", Tenant: account, Key: fmt.Sprintf("evt-%d", 900+i), Payload: semel.NoPayload()}
		err := sqlitestore.Once(t.Context(), shop, call, func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) error {
			return s.box.Put(ctx, tx, outbox.Message{Topic: "webhook", OrderKey: account, ID: call.Key, Body: []byte(`{"type":"payment.succeeded"}`)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := outbox.New(s.box, refuses("acct-117"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	err = proctest.Until(waitLimit, 10*time.Millisecond, func() error {
		stats, err := s.box.Stats(ctx)
		if err == nil && (stats.Quarantined != 1 || stats.Waiting != 0) {
			err = fmt.Errorf("the outbox has %+v", stats)
		}
		return err
	})
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
}

// refuses is a sink that cannot send the messages of an order key.
type refuses string

func (key refuses) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{Parallel: 1}, answer, func(_ context.Context, m *outbox.Message) error {
		if m.OrderKey == string(key) {
			return outbox.Poison(errors.New("410 Gone: the customer has removed this webhook"))
		}
		return nil
	})
}

// browser starts a Chromium for a test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := "", error(nil)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: chromium", errMissing), errMissing)
	}
	profile, err := os.MkdirTemp("", "semel-chromium-") //nolint:usetesting // a child of the browser may write to it after the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.WSURLReadTimeout(waitLimit), chromedp.WindowSize(1280, 900))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil { // starts it, before the time limit of a step
		t.Fatal(err)
	}
	return ctx
}

// step is one action in the browser.
type step = chromedp.Action[chromedp.Void]

// do carries out steps, one after the other.
func do(ctx context.Context, t *testing.T, steps ...step) {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	if err := chromedp.Do(within, steps...); err != nil {
		t.Fatal(err)
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](ctx context.Context, t *testing.T, expression string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	v, err := chromedp.Run(within, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// shows waits until a page shows a text.
func shows(text string) step {
	return chromedp.WaitVisible(fmt.Sprintf("//main[contains(., %q)]", text))
}
