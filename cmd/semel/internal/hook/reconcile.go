package hook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

// Question is the JSON body of a POST to the reconcile hook.
type Question struct {
	Operation string `json:"operation"`
	Tenant    string `json:"tenant"` // empty: scope single
	Key       string `json:"key"`
	// RequestDigest is the Semel-Request-Digest of each attempt.
	RequestDigest string `json:"request_digest"`
	// Fence is higher than the Semel-Fence of each attempt so far. A service
	// that answers "final" must refuse requests with a lower fence from now on.
	Fence     uint64    `json:"fence"`
	Attempts  int       `json:"attempts"`
	FirstSeen time.Time `json:"first_seen"`
}

// answer is the JSON answer of the reconcile hook.
type answer struct {
	Happened *bool     `json:"happened"` // null: not known
	Final    bool      `json:"final"`    // it did not happen, and never will
	Response *response `json:"response"`
}

type response struct {
	Status     int             `json:"status"`
	Headers    map[string]text `json:"headers"`
	Body       *string         `json:"body"`
	BodyBase64 *string         `json:"body_base64"`
}

// text is one string or several.
type text []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(doc []byte) error {
	var one string
	if err := json.Unmarshal(doc, &one); err == nil {
		*t = text{one}
		return nil
	}
	var several []string
	if err := json.Unmarshal(doc, &several); err != nil {
		return errors.New("a header must be text or a list of texts")
	}
	*t = several
	return nil
}

// Ask returns a semel.Options.Reconcile that asks the hook. It reads from the store when
// a request was first seen.
func (h *Hook) Ask(st store.Store) func(context.Context, *semel.Execution) (semel.Verdict, error) {
	return func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
		key := store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
		f, err := st.Get(ctx, key)
		if err != nil {
			return semel.Verdict{}, fmt.Errorf("read when the request was first seen: %w", err)
		}
		return h.Reconcile(ctx, Question{
			Operation: key.Operation, Tenant: key.Tenant, Key: key.Value, RequestDigest: x.Fingerprint(),
			Fence: x.Fence(), Attempts: x.Attempt(), FirstSeen: f.Record.Created,
		})
	}
}

// Reconcile asks about a parked request. An error or the zero Verdict means that
// the outcome is not known.
func (h *Hook) Reconcile(ctx context.Context, q Question) (semel.Verdict, error) {
	for field, v := range map[string]string{"operation": q.Operation, "tenant": q.Tenant, "key": q.Key} {
		if !utf8.ValidString(v) { // JSON would replace the bytes and name another record
			return semel.Verdict{}, fmt.Errorf("reconcile-url: cannot be asked: the %s is no UTF-8; see semel inspect resolve", field)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	doc, err := json.Marshal(q)
	if err != nil {
		return semel.Verdict{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url.String(), bytes.NewReader(doc))
	if err != nil {
		return semel.Verdict{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := h.client.Do(req)
	if err != nil {
		return semel.Verdict{}, fmt.Errorf("reconcile-url: %w", input.WithoutQuotes(input.WithoutURL(err)))
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as it counts
	if res.StatusCode != http.StatusOK {
		return semel.Verdict{}, fmt.Errorf("reconcile-url: the answer is %d, not 200", res.StatusCode)
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return semel.Verdict{}, errors.New("reconcile-url: the Content-Type of the answer is not application/json")
	}
	doc, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return semel.Verdict{}, fmt.Errorf("reconcile-url: %w", input.WithoutQuotes(err))
	}
	if len(doc) > maxAnswer {
		return semel.Verdict{}, fmt.Errorf("reconcile-url: the answer has more than %d bytes", maxAnswer)
	}
	v, err := h.verdict(doc)
	if err != nil {
		return semel.Verdict{}, fmt.Errorf("reconcile-url: %w", err)
	}
	return v, nil
}

// verdict reads an answer. Whatever is not plainly a yes or a final no is
// "not known".
func (h *Hook) verdict(doc []byte) (semel.Verdict, error) {
	var a answer
	if err := json.Unmarshal(doc, &a); err != nil {
		return semel.Verdict{}, fmt.Errorf("the answer is not understood: %w", err)
	}
	if path := twice(doc, answerDepth); path != nil {
		return semel.Verdict{}, fmt.Errorf("the answer has %s twice", shownPath(path))
	}
	switch {
	case a.Happened == nil:
		return semel.Verdict{}, nil
	case !*a.Happened && !a.Final:
		return semel.Verdict{}, nil // it may still happen
	case !*a.Happened && a.Response != nil:
		return semel.Verdict{}, errors.New(`the answer has a response, but "happened" is false`)
	case !*a.Happened:
		return semel.DidNotHappen(), nil
	case a.Response == nil:
		return semel.Verdict{}, errors.New(`the answer says "happened", but has no response to give the client`)
	}
	o, err := a.Response.outcome()
	if err != nil {
		return semel.Verdict{}, err
	}
	if h.statusOnly {
		o = store.Outcome{Code: o.Code, Gone: true}
	}
	return semel.Happened(o), nil
}

// answerDepth is how deep the objects of an answer are: it has a response, which has headers.
const answerDepth = 3

// members are the names of an answer's own members, in small letters.
var members = []string{"happened", "final", "response", "status", "headers", "body", "body_base64"}

// shownPath is the path of a member for people. It ends before a name that the hook has chosen,
// because an error quotes no part of an answer.
func shownPath(path []string) string {
	for i, name := range path {
		switch known := slices.Contains(members, name); {
		case !known && i == 0:
			return "a member"
		case !known:
			return fmt.Sprintf("a member of %q", strings.Join(path[:i], "."))
		}
	}
	return strconv.Quote(strings.Join(path, "."))
}

// twice returns the path of a member that an object has more than once, in small letters,
// because package json ignores capitals and would use the last one. It looks into the objects of
// depth levels. It returns nil if all members differ.
func twice(doc []byte, depth int) []string {
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return nil // unreachable: the document has been parsed already
		}
		name = strings.ToLower(name)
		if seen[name] {
			return []string{name}
		}
		seen[name] = true
		if depth > 1 {
			if inner := twice(value, depth-1); inner != nil {
				return append([]string{name}, inner...)
			}
		}
	}
	return nil
}

// outcome is the response as package semelhttp keeps and replays it.
func (r *response) outcome() (store.Outcome, error) {
	if r.Status < 200 || r.Status > 599 {
		return store.Outcome{}, fmt.Errorf("response.status: is %d; it must be from 200 to 599", r.Status)
	}
	o := store.Outcome{Code: r.Status}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		for _, v := range r.Headers[name] {
			o.Header = append(o.Header, store.Header{Name: textproto.CanonicalMIMEHeaderKey(name), Value: v})
		}
	}
	switch {
	case r.Body != nil && r.BodyBase64 != nil:
		return o, errors.New("response: has both body and body_base64")
	case r.Body != nil:
		o.Body = []byte(*r.Body)
	case r.BodyBase64 != nil:
		body, err := base64.StdEncoding.DecodeString(*r.BodyBase64)
		if err != nil {
			return o, errors.New("response.body_base64: is no base64")
		}
		o.Body = body
	}
	typed := slices.ContainsFunc(o.Header, func(h store.Header) bool { return h.Name == "Content-Type" })
	if len(o.Body) > 0 && !typed {
		o.Header = append(o.Header, store.Header{Name: "Content-Type"}) // empty, so that a replay guesses none
	}
	return o, nil
}
