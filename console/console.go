package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-go/semel/console/rates"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// Options configures a Console. Nil and zero fields mean the defaults.
type Options struct {
	// Operator names the person who sent a request, such as the user of the log-in. The
	// record and the log keep the name. A request without a name can change nothing.
	// Nil: nobody can change anything.
	Operator func(r *http.Request) string
	// ShowBodies shows kept answers, and the inputs and results of steps. Cookies are
	// never shown.
	ShowBodies bool
	// Retention is how long a record is kept after a verdict: 7 days by default. Use at
	// least the longest of the services: a repeat that comes later is a new call.
	Retention time.Duration
	// Sagas are the names of the definitions whose sagas can be listed. Stuck ones are
	// shown without it.
	Sagas []string
	// Outbox shows the messages of an outbox. Nil: none.
	Outbox outbox.Inspector
	// Rates shows how many calls a minute ran, were replayed and conflicted. Nil: that page
	// is not there. The caller runs the recorder.
	Rates *rates.Recorder
	// HashKeys is that of the Guards, so that a search finds a record by the tenant and
	// the key that clients send. Pages show the hashes. Nil: the search form takes tenants
	// and keys as they are stored.
	HashKeys []byte
	// Log gets a line for each change that an operator asks for, with its result. Nil:
	// slog.Default.
	Log *slog.Logger
	// Audit is called before each change. If it fails, nothing is changed. The function
	// that it returns is called after the change, with its error; semel.ErrInvalid and
	// store.ErrChanged mean that nothing was changed. Nil: none.
	Audit func(ctx context.Context, a Act) (end func(err error) error, err error)
}

// Console serves the pages for one store. Safe for concurrent use.
type Console struct {
	store   store.Store
	lister  store.Lister
	options Options
	handler http.Handler
}

// New makes a console. It does no I/O. The store must be able to list its records.
func New(st store.Store, o *Options) (*Console, error) {
	if st == nil {
		return nil, errors.New("console: the store is nil")
	}
	lister, ok := store.As[store.Lister](st)
	if !ok {
		return nil, errors.New("console: this store cannot list records; the stores of Semel can")
	}
	c := &Console{store: st, lister: lister}
	if o != nil {
		c.options = *o
	}
	if c.options.Retention < 0 {
		return nil, fmt.Errorf("console: options: Retention %v must not be negative", c.options.Retention)
	}
	c.options.Retention = cmp.Or(c.options.Retention, 7*24*time.Hour)
	if c.options.Log == nil {
		c.options.Log = slog.Default()
	}
	mux := http.NewServeMux()
	for path, p := range c.pages() {
		mux.Handle("GET "+path, c.page(p))
		if p.live {
			mux.Handle("GET /live"+path, c.live(p))
		}
		if p.act != nil {
			mux.Handle("POST "+path, c.change(p))
		}
	}
	mux.Handle("GET /assets/", http.FileServerFS(assetFiles))
	c.handler = protect(mux)
	return c, nil
}

// ServeHTTP serves the console below any path, if a StripPrefix removes that path. Its
// links are relative, so the path must end with a slash.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// pages are all pages by their paths.
func (c *Console) pages() map[string]page {
	return map[string]page{
		"/{$}":     {name: "overview", data: c.overview, live: true},
		"/records": {name: "records", data: c.records},
		"/record":  {name: "record", data: c.record, act: c.changeRecord, live: true},
		"/sagas":   {name: "sagas", data: c.sagas},
		"/rates":   {name: "rates", data: c.rates, live: true},
		"/outbox":  {name: "outbox", data: c.messages, live: true},
		"/message": {name: "message", data: c.message, act: c.changeMessage, after: "outbox", live: true},
	}
}

// protect refuses requests that other sites make a browser send, and tells the browser
// to run nothing but the console's own script and to show it in no other page.
func protect(h http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Frame-Options":         "DENY",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "same-origin",
			"Cache-Control":           "no-store",
		} {
			w.Header().Set(name, value)
		}
		if embedded(r.Header) {
			http.Error(w, "A page of another site may link to the console, and not load it.", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

// embedded reports whether a page of another site loads a page of the console, as an image or
// in a frame. It could not read the page, but would make the console search the store again
// and again. A page that is opened by a link is not embedded.
func embedded(h http.Header) bool {
	site, dest := h.Get("Sec-Fetch-Site"), h.Get("Sec-Fetch-Dest")
	link := h.Get("Sec-Fetch-Mode") == "navigate" && (dest == "document" || dest == "")
	return (site == "cross-site" || site == "same-site") && !link
}

// operator is the name of the person who may change something, or "".
func (c *Console) operator(r *http.Request) string {
	if c.options.Operator == nil {
		return ""
	}
	return c.options.Operator(r)
}
