package cli

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/shell"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/lasterror"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// view is a record as operators see it.
type view struct {
	Operation string `json:"operation"`
	Tenant    string `json:"tenant"`
	Key       string `json:"key"`

	// The names again where they are no UTF-8, which JSON cannot write.
	OperationBase64 []byte `json:"operation_base64,omitempty"`
	TenantBase64    []byte `json:"tenant_base64,omitempty"`
	KeyBase64       []byte `json:"key_base64,omitempty"`

	State     store.State  `json:"state"`
	Lapsed    bool         `json:"lapsed,omitempty"`  // its holder is gone; a sweep or the next request acts on it
	Expired   bool         `json:"expired,omitempty"` // it counts as absent
	OnDoubt   store.Policy `json:"on_doubt"`
	Fence     uint64       `json:"fence"`
	Attempts  int          `json:"attempts"`
	Holder    string       `json:"holder"`
	Created   time.Time    `json:"created"`
	Updated   time.Time    `json:"updated"`
	Doubt     time.Time    `json:"in_doubt_since,omitzero"`
	Until     time.Time    `json:"until,omitzero"`
	Completed time.Time    `json:"completed,omitzero"`
	Expires   time.Time    `json:"expires,omitzero"`
	LastError string       `json:"last_error,omitempty"`
	// Instead of the last error: somebody has let the call, or the saga, run again.
	LastDecision string `json:"last_decision,omitempty"`
	// The code of the last error, or of the kept failure, and its explanation.
	ErrorCode    string  `json:"last_error_code,omitempty"`
	ErrorMeaning string  `json:"last_error_meaning,omitempty"`
	ErrorNext    string  `json:"last_error_next,omitempty"`
	Answer       *answer `json:"answer,omitempty"`
	// The earliest first; the record keeps the last eight.
	FormerOwners []formerOwnerView `json:"former_owners,omitempty"`
	Decisions    []decisionView    `json:"decisions,omitempty"` // by operators and reconcilers, the earliest first
	Steps        []stepView        `json:"steps,omitempty"`     // recorded, in their order
	// Of the names of --downstream-key.
	DownstreamKeys []downstreamKeyView `json:"downstream_keys,omitempty"`

	shownError string   // the last error in words; not in the JSON
	next       []string // the commands for an operator; not in the JSON
}

// answer is what is kept of an answer.
type answer struct {
	Status     int         `json:"status,omitempty"`
	Codec      string      `json:"codec,omitempty"`
	Bytes      int         `json:"bytes"`
	NotKept    bool        `json:"not_kept,omitempty"`
	Headers    http.Header `json:"headers,omitempty"`
	Body       string      `json:"body,omitempty"`
	BodyBase64 string      `json:"body_base64,omitempty"`

	keyMissing bool // that it is encrypted with
}

// viewOf shows headers and body only if it is told to, and never a cookie.
func viewOf(f *store.Found, showBody bool) view {
	r := &f.Record
	v := view{
		Operation: r.Key.Operation, Tenant: r.Key.Tenant, Key: r.Key.Value, State: r.State, Lapsed: r.Lapsed(f.Now), Expired: r.Expired(f.Now),
		OnDoubt: r.Policy, Fence: r.Fence, Attempts: r.Attempt, Holder: r.Holder, Created: r.Created, Updated: r.Updated, Doubt: history.DoubtSince(r), Until: r.Until,
		Completed: r.Completed, Expires: r.Expires, shownError: lasterror.Display(r),
	}
	v.LastError, v.LastDecision = lastErrorOf(r)
	if m, ok := lasterror.Explain(r); ok {
		v.ErrorCode, v.ErrorMeaning, v.ErrorNext = m.Code, m.Happened, m.Next
	}
	past := history.Entries(r)
	for i := range r.FormerOwners {
		o := &r.FormerOwners[i]
		v.FormerOwners = append(v.FormerOwners, formerOwnerView{
			Owner: hex.EncodeToString(o.Owner[:]), Holder: o.Holder, Fence: o.Fence, Attempt: o.Attempt,
			State: o.State, Next: o.Next, Ended: o.Ended, HowEnded: o.End(), operator: past[i].Operator, isSaga: v.isSaga(),
			name: strings.ToLower(cmp.Or(past[i].Name, fmt.Sprintf("attempt %d", o.Attempt))),
		})
	}
	for i := range past {
		if e := &past[i]; e.Decision != "" {
			v.Decisions = append(v.Decisions, decisionView{Time: e.When, Decision: e.Decision, By: e.By, DoubtNotKept: e.DoubtNotKept})
		}
	}
	for to, name := range map[*[]byte]string{&v.OperationBase64: v.Operation, &v.TenantBase64: v.Tenant, &v.KeyBase64: v.Key} {
		if !utf8.ValidString(name) {
			*to = []byte(name)
		}
	}
	if !r.State.Terminal() {
		return v
	}
	o := &r.Outcome
	v.Answer = &answer{Status: o.Code, Codec: o.Codec, Bytes: len(o.Body), NotKept: o.Gone}
	if !showBody {
		return v
	}
	v.Answer.Headers = http.Header{}
	for _, h := range o.Header {
		if !strings.HasPrefix(strings.ToLower(h.Name), "set-cookie") {
			v.Answer.Headers[h.Name] = append(v.Answer.Headers[h.Name], h.Value)
		}
	}
	if utf8.Valid(o.Body) {
		v.Answer.Body = string(o.Body)
	} else {
		v.Answer.BodyBase64 = base64.StdEncoding.EncodeToString(o.Body)
	}
	return v
}

// print writes the record for people, a field a line.
func (v *view) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name string, value any) {
		if s := clean(fmt.Sprint(value)); s != "" {
			_, _ = fmt.Fprintf(t, "%s:\t%s\n", name, s) // Flush tells what went wrong
		}
	}
	at := func(name string, when time.Time) {
		if !when.IsZero() {
			line(name, when.Format(time.RFC3339Nano))
		}
	}
	line("operation", v.Operation)
	line("tenant", v.Tenant)
	line("key", v.Key)
	line("state", v.state())
	doubt := "stuck since"
	if !v.isSaga() { // each step of a saga has a policy of its own
		doubt = "in doubt since"
		line("on doubt", v.OnDoubt)
	}
	line("fence", v.Fence)
	line("attempts", v.Attempts)
	line("holder", v.Holder)
	at("created", v.Created)
	at("updated", v.Updated)
	at(doubt, v.Doubt)
	at("until", v.Until)
	at("completed", v.Completed)
	at("expires", v.Expires)
	line("last error", v.shownError)
	if v.ErrorMeaning != "" && !strings.HasPrefix(v.shownError, v.ErrorMeaning) {
		line("it means", v.ErrorMeaning+" ("+v.ErrorCode+")")
	}
	line("what to do", v.ErrorNext)
	for i := range v.FormerOwners {
		if !v.FormerOwners[i].operator { // it is among the decisions
			line("former owner", &v.FormerOwners[i])
		}
	}
	for i := range v.Decisions {
		if v.Decisions[i].Step == "" { // the others are among the steps
			line("decision", &v.Decisions[i])
		}
	}
	if a := v.Answer; a != nil {
		line("answer", a)
		for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
			line("  "+clean(name), strings.Join(a.Headers[name], ", "))
		}
		for text := range strings.Lines(a.Body) {
			line("body", text)
		}
		line("body (base64)", a.BodyBase64)
	}
	for i := range v.Steps {
		if d := v.Steps[i].decision; d != nil {
			line("stuck", d.Stuck)
			line("decision", d)
			continue
		}
		if event := history.StepEvent(v.Steps[i].Name); event != "" && v.isSaga() {
			text := v.Steps[i].when()
			if strings.Contains(v.Steps[i].Name, history.SagaSkip) { // only a skip has a result
				text = strings.TrimPrefix(v.Steps[i].String(), "done ")
			} else if key := v.Steps[i].DownstreamKey; key != "" {
				text += ", its downstream key: " + key
			}
			line(clean(event), text)
			continue
		}
		line("step "+clean(v.Steps[i].Name), &v.Steps[i])
	}
	for _, k := range v.DownstreamKeys {
		line("key sent to "+clean(k.Name), k.Key)
	}
	for i, text := range v.next {
		if i == 0 {
			line("next step", text)
			continue
		}
		_, _ = fmt.Fprintf(t, "\t%s\n", clean(text)) // Flush tells what went wrong
	}
	return t.Flush()
}

// String is the answer in a few words.
func (a *answer) String() string {
	s := fmt.Sprintf("%d bytes", a.Bytes)
	if a.NotKept {
		s = "body not kept"
	}
	switch {
	case a.Codec != encrypted.Codec:
	case a.keyMissing:
		s += ", encrypted with a key that is missing"
	default:
		s += ", encrypted; --encryption-keys shows it"
	}
	if a.Status != 0 {
		s = fmt.Sprintf("%d, %s", a.Status, s)
	}
	return s
}

func (v *view) state() string {
	s := v.State.String()
	if v.isSaga() {
		s = sagaState(v.State)
	}
	if v.Lapsed {
		s += " (lapsed)"
	}
	switch {
	case v.Expired && v.State == store.Released && !v.Expires.After(v.Updated): // kept for no time
		s += " (nothing happened)"
	case v.Expired:
		s += " (expired)"
	}
	return s
}

// clean is s in one line, without what could move a terminal's cursor.
func clean(s string) string { return input.Clean(s) }

// isHTTP reports whether package semelhttp hashed the request of a record, so that its
// answer has a status.
func isHTTP(r *store.Record) bool { return strings.HasPrefix(r.Fingerprint.Alg, "semelhttp/") }

// nextStep says what an operator can do about a call in doubt or a stuck saga, with commands
// that can be pasted into a shell. Empty for any other record.
func (c *storeFlag) nextStep(r *store.Record, steps []store.Step) []string {
	if r.State != store.Unknown {
		return nil
	}
	flags := fmt.Sprintf("%s%s --fence %d --reason TEXT", shell.Flag("tenant", r.Key.Tenant), c.flags(), r.Fence)
	if name, ok := strings.CutSuffix(r.Key.Operation, protocol.SagaSuffix); ok && protocol.IsSaga(r.Key) {
		stuck := history.DescribeStuck(r, steps)
		next := shell.SagaDecisions([]string{name, r.Key.Value}, flags, stuck)
		if stuck.InvalidSkip != "" {
			next[0] = "the skip of " + stuck.InvalidSkip + " does not count; skip it again, or take it back with --not-happened. Then " + next[0]
		}
		return next
	}
	resolve := func(verdict string) string {
		return shell.Command("semel inspect resolve", []string{r.Key.Value}, shell.Flag("operation", r.Key.Operation), flags, " --verdict "+verdict)
	}
	const kept = " --retention 7d"
	answer := "--codec json --body-file result.json"
	if isHTTP(r) {
		answer = "--status 201 --header 'Content-Type: application/json' --body-file answer.json"
	}
	next := []string{
		"find out in the other system whether it took effect, then (the retention is at least the service's own) one of:",
		resolve("happened " + answer + kept), resolve("did-not-happen"), resolve("failed" + kept),
	}
	if !isHTTP(r) {
		next = append(next, "of a message nobody reads the answer: --codec raw instead of --codec json --body-file result.json")
	}
	if r.Key.Operation != "http" { // semel proxy passes on the client's key
		next = append(next, "the key that the handler has sent by x.DownstreamKey(NAME): "+c.getCommand(r.Key)+" --downstream-key NAME")
	}
	return next
}
