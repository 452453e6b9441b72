package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// page is one page: data reads what it shows.
type page struct {
	name string
	data func(ctx context.Context, r *http.Request) (any, error)
	// act carries out a form of the page, and returns the name of the text in done that
	// tells its result. Nil: the page has no forms.
	act func(ctx context.Context, operator string, form url.Values) (which string, err error)
	// after is the page that tells the result of a form. Empty: the page itself. A message is
	// gone when it is dropped, or sent again.
	after string
	// live: the page is read again every few seconds, because that costs the store little.
	live bool
}

// frame is what each page is given.
type frame struct {
	Page     string
	Operator string // "": read-only
	Outbox   bool
	Rates    bool
	Live     string // the address of the page's events, with the state that is shown; or ""
	Done     string // the result of the last form, in words
	Error    *problem
	Data     any        // with an Error: nil, or the page below it
	Form     url.Values // that was refused; nil: none was
}

// Typed is what was typed into a field of a form that was refused; initial otherwise.
func (f frame) Typed(field, initial string) string {
	if f.Form == nil {
		return initial
	}
	return f.Form.Get(field)
}

// Ticked reports whether a box with a value was ticked in a form that was refused.
func (f frame) Ticked(field, value string) bool { return slices.Contains(f.Form[field], value) }

// Mark refers from a field with a mistake to its description.
func (f frame) Mark(field string) template.HTMLAttr {
	if f.Error == nil || f.Error.Field != field {
		return ""
	}
	return ` aria-invalid="true" aria-describedby="problem"`
}

// done are the texts about forms that were carried out. They are here, and not in the
// address of the page, so that a link cannot make the console say anything else.
var done = map[string]string{
	"reopen":  "Reopened: the next call with this key runs, with all its attempts.",
	"resolve": "Resolved.",
	"decide":  "Decided: a worker of this saga goes on with it, if one runs.",
	"retry":   "Due at once: a publisher sends the message again.",
	"drop":    "Dropped: the later messages of its order key go on.",
}

// problem is an error that a person can do something about.
type problem struct {
	Status  int
	Text    string
	Heading string // "": That did not work
	Field   string // that the text is about, or ""
}

func (p *problem) Error() string { return p.Text }

func notFound(text string) error { return &problem{Status: http.StatusNotFound, Text: text} }
func badInput(text string) error { return badField("", text) }
func badField(name, text string) error {
	return &problem{Status: http.StatusBadRequest, Text: text, Field: name}
}

// changedError is store.ErrChanged with the present state of the record in words.
type changedError struct{ now string }

func (e *changedError) Error() string {
	return "the record has changed since you opened this page; it is " + e.now + " now"
}

func (e *changedError) Unwrap() error { return store.ErrChanged }

// problemOf finds words for an error.
func problemOf(err error) *problem {
	var p *problem
	var refused *semel.Error
	var changed *changedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused) && errors.Is(refused.Reason, store.ErrChanged) && refused.Cause != nil: // it is not in a state for this
		return &problem{Status: http.StatusConflict, Text: "Nothing was changed: " + refused.Cause.Error() + "."}
	case errors.As(err, &changed):
		return &problem{Status: http.StatusConflict, Text: "Nothing was changed: " + changed.Error() + ". Look at it again before you decide."}
	case errors.Is(err, store.ErrChanged), errors.Is(err, store.ErrLeaseLost):
		return &problem{Status: http.StatusConflict, Text: "Nothing was changed: the record has changed since you opened this page. Look at it again before you decide."}
	case errors.Is(err, store.ErrCorrupt):
		return &problem{Status: http.StatusInternalServerError, Text: "The record cannot be read: " + err.Error() + ". The command semel inspect get shows the rest of it."}
	case errors.Is(err, outbox.ErrNotFound):
		return &problem{Status: http.StatusNotFound, Text: "There is no such message. It may have been sent or dropped."}
	case errors.Is(err, outbox.ErrState):
		return &problem{Status: http.StatusConflict, Text: "Nothing was changed: the message is in another state than the page has shown. Look at it again before you decide."}
	}
	return &problem{Status: http.StatusServiceUnavailable, Text: "The store did not answer: " + err.Error()}
}

var templates = func() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(functions).ParseFS(pageFiles, "pages/frame.html", "pages/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"overview", "records", "record", "sagas", "rates", "outbox", "message"} {
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(pageFiles, "pages/"+name+".html"))
	}
	return all
}()

// page serves a page.
func (c *Console) page(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := p.read(r)
		f := frame{Done: done[r.FormValue("done")], Data: data}
		if err != nil {
			f.Error, f.Data = problemOf(err), nil
		}
		if p.live { // with an error, too: it may be over soon
			f.Live = "live/" + p.path() + "?shown=" + stateOf(data, err) + "&" + r.URL.RawQuery
		}
		c.write(w, r, p, f)
	})
}

// write renders the page into memory first, so that an error never shows half of it.
func (c *Console) write(w http.ResponseWriter, r *http.Request, p page, f frame) {
	f.Page, f.Operator, f.Outbox, f.Rates = p.name, c.operator(r), c.options.Outbox != nil, c.options.Rates != nil
	var b bytes.Buffer
	if err := templates[p.name].ExecuteTemplate(&b, "frame", f); err != nil {
		c.options.Log.ErrorContext(r.Context(), "console: a page could not be written", "page", p.name, "error", err)
		http.Error(w, "The page could not be written; the log of the console says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if f.Error != nil {
		w.WriteHeader(f.Error.Status)
	}
	_, _ = w.Write(b.Bytes()) // the browser may be gone
}

// readTime is how long a page may read the store and the outbox.
const readTime = 20 * time.Second

// read finds what the page shows.
func (p page) read(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	return p.data(ctx, r)
}

// path is the page's address from the start of the console.
func (p page) path() string {
	if p.name == "overview" {
		return ""
	}
	return p.name
}

// actTime is how long an act may take. A stop of semel console waits a little longer.
const actTime = 20 * time.Second

// change carries out a form, and sends the browser to the page that tells the result.
func (c *Console) change(p page) http.Handler {
	const most = 1 << 20 // bytes of a form
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		operator := c.operator(r)
		err := error(&problem{Status: http.StatusForbidden, Text: "This console is read-only for you. " +
			"An operator needs a log-in; see the documentation of the console."})
		var which string
		if operator != "" {
			if err = r.ParseForm(); err != nil {
				err = badInput("The form could not be read: " + err.Error())
			} else {
				// An act goes on to its end if the browser drops the request, as after a
				// double click, because a part of a decision is no decision.
				ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actTime)
				defer cancel()
				keepBytes(r)
				which, err = p.act(ctx, operator, r.PostForm)
			}
		}
		if err != nil {
			f := frame{Error: problemOf(err)}
			if f.Error.Status == http.StatusBadRequest {
				f.Data, f.Form = c.refused(p, r)
			}
			c.write(w, r, p, f)
			return
		}
		to, query := p.after, url.Values{}
		if to == "" {
			to, query = p.path(), r.URL.Query()
		}
		query.Set("done", which)
		// A relative address is right below any path.
		w.Header().Set("Location", to+"?"+query.Encode())
		w.WriteHeader(http.StatusSeeOther)
	})
}

// keepBytes takes the names that are in the address of a form from there, because a browser
// replaces bytes that are no UTF-8 in a field, and would name another record.
func keepBytes(r *http.Request) {
	address := r.URL.Query()
	for _, name := range []string{"operation", "tenant", "key"} {
		if v, ok := address[name]; ok {
			r.PostForm[name] = v
		}
	}
}

// refused is the page of a form with a mistake, and the form, so that nothing has to be typed
// twice: browsers do not keep it, because the pages are not to be stored. Nil if the page
// cannot be shown.
func (c *Console) refused(p page, r *http.Request) (data any, form url.Values) {
	data, err := p.read(r)
	if err != nil {
		return nil, nil
	}
	return data, r.PostForm
}
