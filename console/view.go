package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/lasterror"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// entry is a record as the pages show it.
type entry struct {
	Key   store.Key
	Work  string // the operation, or the name of the saga
	Hash  string // as logs show it
	Link  string // the address of its page
	State string
	Note  string // explains the state
	Saga  bool
	Fence uint64

	Attempts                    int
	Policy                      string
	Holder, Error               string
	ErrorMeaning, ErrorNext     string // of the error's code, if it has one
	Created, Completed, Expires time.Time
	Answer                      *answer // only on the record's own page

	// A live page compares the others. Now differs each time, and a renewal of the lease
	// changes Updated and Until.
	Updated, Until, Now time.Time `json:"-"`
}

// answer is what is kept of an answer, or of a step's result.
type answer struct {
	Status int
	Size   string
	Header []store.Header
	Body   string
}

// link is the address of a record's page.
func link(k store.Key) string {
	return "record?" + url.Values{"operation": {k.Operation}, "tenant": {k.Tenant}, "key": {k.Value}}.Encode()
}

func entryOf(f *store.Found) entry {
	r := &f.Record
	e := entry{
		Key: r.Key, Hash: r.Key.Short(), Link: link(r.Key), Saga: protocol.IsSaga(r.Key), Fence: r.Fence, Attempts: r.Attempt, Policy: r.Policy.String(),
		Holder: r.Holder, Error: lasterror.Display(r), Created: r.Created, Updated: r.Updated, Until: r.Until, Completed: r.Completed, Expires: r.Expires, Now: f.Now,
	}
	if m, ok := lasterror.Explain(r); ok {
		e.ErrorMeaning, e.ErrorNext = m.Happened+" ("+m.Code+")", strings.Replace(m.Next, "decide by semel inspect resolve", "decide below, or by semel inspect resolve", 1)
	}
	e.Work = e.Key.Operation
	if e.Saga {
		e.Work = "saga " + strings.TrimSuffix(e.Work, protocol.SagaSuffix)
	}
	e.State, e.Note = stateInWords(f, e.Saga)
	return e
}

// expired is the state in words of a record whose retention is over.
const expired = "expired"

// stateInWords is the state of a record for people, with an explanation.
func stateInWords(f *store.Found, isSaga bool) (state, note string) {
	r := &f.Record
	switch {
	case r.Expired(f.Now):
		return expired, "Its retention is over. The next call with this key runs as if there had been none."
	case r.State == store.Unknown && isSaga:
		return "stuck", "The saga waits for an operator."
	case r.State == store.Unknown:
		return "in doubt", "It is not known whether its effect happened. Duplicates are refused until somebody says so."
	case r.State == store.Processing && r.Lapsed(f.Now):
		return "abandoned", "Its process is gone: the lease has ended. The next call, or a sweep, acts on it."
	case r.State == store.Processing:
		return "running", "A process holds it, and renews the lease while it works."
	case r.State == store.Released && isSaga:
		return "waiting", "A worker goes on with the saga when it is due."
	case r.State == store.Released:
		return "released", "The last attempt had no effect, or may be repeated. The next call runs."
	case r.State == store.Started:
		return "reserved", "A token was given out, and no call has come with it yet."
	case r.State == store.Completed:
		return "completed", "Duplicates get the kept answer."
	case r.State == store.Failed:
		return "failed", "It failed for good. Duplicates get the kept failure."
	}
	return r.State.String(), ""
}

// keptAnswer is the answer that duplicates get, or nil.
func (c *Console) keptAnswer(r *store.Record) *answer {
	if !r.State.Terminal() {
		return nil
	}
	return c.answerOf(&r.Outcome)
}

func (c *Console) answerOf(o *store.Outcome) *answer {
	a := &answer{Status: o.Code, Size: fmt.Sprintf("%d bytes", len(o.Body))}
	if o.Gone {
		a.Size = "not kept"
	}
	if o.Codec == encrypted.Codec {
		a.Size += ", encrypted"
		return a
	}
	if !c.options.ShowBodies {
		return a
	}
	for _, h := range o.Header {
		if !strings.EqualFold(h.Name, "Set-Cookie") && !strings.EqualFold(h.Name, "Set-Cookie2") {
			a.Header = append(a.Header, h)
		}
	}
	a.Body = text(o.Body)
	return a
}

// Most bytes of a body on a page, as it is kept and with indentation.
const (
	most         = 64 << 10
	mostIndented = 4 * most
)

// text is a body for people: indented if it is JSON, and in hexadecimal if it is no text.
// Deeply nested JSON is not indented.
func text(b []byte) string {
	cut := ""
	if len(b) > most {
		b, cut = b[:most], fmt.Sprintf("\n… and %d bytes more", len(b)-most)
	}
	var indented bytes.Buffer
	switch {
	case indentedSize(b) <= mostIndented && json.Indent(&indented, b, "", "  ") == nil:
		return indented.String() + cut
	case utf8.Valid(b):
		return string(b) + cut
	}
	return fmt.Sprintf("%x", b) + cut
}

// indentedSize is the greatest size of JSON with indentation. It can grow by the square of the
// depth.
func indentedSize(b []byte) int {
	size, depth, quoted := len(b), 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == ':':
			size++
		}
	}
	return size
}

var functions = template.FuncMap{
	"ago":    ago,
	"span":   span,
	"utc":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"class":  func(s string) string { return strings.ReplaceAll(s, " ", "-") },
	"status": http.StatusText,
	"short":  outbox.ShortCall,
	// printable shows bytes that are no text as they are written in Go.
	"printable": func(s string) string {
		if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
			return s
		}
		return strings.Trim(fmt.Sprintf("%q", s), `"`)
	},
}

// ago is how long a time was before now, or will be after it.
func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return ""
	case d < 0:
		return "in " + span(-d)
	default:
		return span(d) + " ago"
	}
}

// span is a duration with one unit.
func span(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= 2*u.unit {
			return fmt.Sprintf("%d %s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
