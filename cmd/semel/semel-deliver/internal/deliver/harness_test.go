package deliver

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/event"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// broker is a source in memory.
type broker struct {
	mu      sync.Mutex
	ready   []*letterbox
	changed chan struct{}
	open    int // messages that are not acked
	naks    []time.Duration
	copies  map[driver.Action][][]store.Header
	horizon time.Duration
	limits  []int // of each Next
	here    int   // messages that the consumer has
	most    int   // the greatest value of here
}

func newBroker() *broker {
	return &broker{changed: make(chan struct{}), copies: map[driver.Action][][]store.Header{}, horizon: time.Hour}
}

// letterbox is a delivery of the broker.
type letterbox struct {
	*broker
	m *consume.Message
}

// publish publishes a message with a key, an order key and a body.
func (b *broker) publish(key, order, body string, headers ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
	m := &consume.Message{Origin: consume.Origin{Topic: "orders", Offset: int64(b.open)}, Body: []byte(body), OrderKey: order, Published: time.Now()}
	if key != "" {
		m.Headers = []store.Header{{Name: consume.KeyHeader, Value: key}}
	}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, store.Header{Name: headers[i], Value: headers[i+1]})
	}
	b.give(&letterbox{b, m})
}

// give delivers a message. The caller holds mu.
func (b *broker) give(l *letterbox) {
	b.ready = append(b.ready, l)
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *broker) Info(context.Context) (driver.Info, error) {
	return driver.Info{Horizon: b.horizon}, nil
}
func (b *broker) Stop(context.Context) error { return nil }

func (b *broker) Next(ctx context.Context, limit int) (ds []driver.Delivery, err error) {
	b.mu.Lock()
	changed := b.changed
	b.limits = append(b.limits, limit)
	n := min(limit, len(b.ready))
	for _, l := range b.ready[:n] {
		ds = append(ds, l)
	}
	b.ready = b.ready[n:]
	b.here += n
	b.most = max(b.most, b.here)
	b.mu.Unlock()
	if n == 0 {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ds, nil
}

func (l *letterbox) Message() *consume.Message { return l.m }
func (l *letterbox) Ack(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.here--
	return nil
}
func (l *letterbox) Nak(_ context.Context, delay time.Duration) error {
	l.mu.Lock()
	l.naks = append(l.naks, delay)
	l.here--
	l.mu.Unlock()
	time.AfterFunc(min(delay, 20*time.Millisecond), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.give(l)
	})
	return nil
}
func (l *letterbox) Forward(_ context.Context, to driver.Action, headers []store.Header) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copies[to] = append(l.copies[to], headers)
	return nil
}
func (l *letterbox) Extend(context.Context) error { return nil }
func (l *letterbox) Revoked() <-chan struct{}     { return nil }

// unsettled is how many messages are not acked.
func (b *broker) unsettled() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// letters are the copies that went somewhere, as "reason code error".
func (b *broker) letters(to driver.Action) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, hs := range b.copies[to] {
		text := ""
		for _, name := range []string{driver.LetterReason, driver.LetterCode, driver.LetterError} {
			for _, h := range hs {
				if h.Name == name {
					text += h.Value + " "
				}
			}
		}
		list = append(list, strings.TrimSpace(text))
	}
	return list
}

// posted is a request that the service got.
type posted struct {
	key, body string
	header    http.Header
}

// endpoint is a service that answers as the test says.
type endpoint struct {
	*httptest.Server
	mu   sync.Mutex
	got  []posted
	seen map[string]int // requests by key
}

// newEndpoint makes a service. Answer gets the number of the request with its key, from
// one.
func newEndpoint(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) *endpoint {
	e := &endpoint{seen: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		key, _ := strconv.Unquote(r.Header.Get("Idempotency-Key"))
		e.mu.Lock()
		e.got = append(e.got, posted{key, string(body), r.Header})
		e.seen[key]++
		n := e.seen[key]
		e.mu.Unlock()
		answer(w, r, n)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) requests() []posted {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

// quick is a backoff for tests.
func quick(int) time.Duration { return 5 * time.Millisecond }

// serving is a service that runs.
type serving struct {
	*Service
	wait func() error // for its end
	stop func() error
}

// serve delivers the messages of a broker to a URL, until the test ends.
func serve(t *testing.T, st store.Store, b *broker, address string, change func(o *Options)) *serving {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := Options{
		Calls: Calls{Operation: "billing", Sources: []consume.KeySource{consume.FromHeader(consume.KeyHeader), consume.CloudEvent()}},
		Sending: Sending{URL: u, Transport: upstream.NewTransport(time.Second, nil), Defaults: event.Defaults{Source: "test:", Type: "semel.message"},
			Timeout: 30 * time.Second, MaxBody: 1 << 20, MaxRefusals: 3, Log: log},
		Lease: 30 * time.Second, StoreTimeout: 5 * time.Second, Retention: time.Hour, MaxAttempts: 3, Backoff: quick,
		Concurrency: 8, InFlight: 32, MaxBytes: 64 << 20, Drain: 10 * time.Second, Log: log,
	}
	if change != nil {
		change(&o)
	}
	s, err := New(cmp.Or[store.Store](st, memstore.New(nil)), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, b) }()
	wait := sync.OnceValue(func() error { return <-ended })
	stop := func() error {
		cancel()
		return wait()
	}
	t.Cleanup(func() { _ = stop() })
	return &serving{s, wait, stop}
}

// eventually waits until something has happened.
func eventually(t *testing.T, event string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !happened(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", event)
		}
	}
}

// settled waits until all messages are acked.
func (b *broker) settled(t *testing.T) {
	t.Helper()
	eventually(t, "all messages are acked", func() bool { return b.unsettled() == 0 })
}
