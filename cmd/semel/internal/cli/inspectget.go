package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/cmd/semel/internal/shell"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

type inspectGetCmd struct {
	storeFlag
	keyFlags
	keyMissing bool `kong:"-"` // the file of --encryption-keys does not have the record's key

	ShowBody bool `name:"show-body" help:"Also show the headers and the body of the kept answer, and the results of steps. Cookies are never shown."`

	DownstreamKeys []string `name:"downstream-key" placeholder:"NAME" sep:"none" help:"Also show the key that the handler has sent to another system: the NAME is the one of x.DownstreamKey(NAME). For x.StepDownstreamKey(STEP, NAME), and in a step, it is STEP#NAME. Can be repeated."`
}

// Help implements kong.HelpProvider.
func (*inspectGetCmd) Help() string {
	return `Shows a record, its last eight former owners and how each of them ended, who decided about a request in doubt and when, and the steps that its call has recorded. A step that is shown is done and does not run again.

Examples:

    semel inspect get 8e03978e-40d5-43dd-bc93-6894a57f9324 --tenant ann
    semel inspect get k1 --operation payments --store sqlite:/var/lib/semel.db --show-body --json
    semel inspect get k1 --tenant ann --hash-keys-file /etc/semel/hash-keys
    semel inspect get k1 --operation payments --downstream-key bank
    semel inspect get 5f3a09c1        # the hash that logs show instead of the key: 8 hexadecimal digits; reads all records
`
}

func (c *inspectGetCmd) Run(ctx context.Context, e *env) error {
	err := c.show(ctx, e)
	if errors.Is(err, encrypted.ErrUnknownKey) {
		stored := *c
		stored.Keys, stored.keyMissing = "", true
		if stored.show(ctx, e) == nil {
			err = fmt.Errorf("the record is shown as it is stored: %w", err)
		}
	}
	return err
}

// show prints the record.
func (c *inspectGetCmd) show(ctx context.Context, e *env) error {
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		f, err := c.find(ctx, h)
		if err != nil {
			return err
		}
		f, steps, err := lookWithSteps(ctx, h, f.Record.Key)
		if err != nil {
			return err
		}
		v := viewOf(&f, c.ShowBody)
		v.addSteps(steps, c.ShowBody)
		v.addDownstreamKeys(f.Record.Key, c.DownstreamKeys)
		if v.Answer != nil {
			v.Answer.keyMissing = c.keyMissing
		}
		for i := range v.Steps {
			v.Steps[i].Result.keyMissing = c.keyMissing
		}
		switch {
		case v.Lapsed:
			v.next = c.sweepStep()
		case f.Record.State == store.Processing:
			v.next = c.waitStep(&f.Record)
		default:
			v.next = c.nextStep(&f.Record, steps)
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(v)
		}
		return v.print(e.stdout)
	})
}

// look finds a record by its key or by the hash of the key. If the operation is empty, look
// takes the key in the operation of semel proxy, and a hash in any operation. The error says
// how to search for the record.
func look(ctx context.Context, h store.Store, given store.Key) (store.Found, error) {
	k := withOperation(given)
	f, err := h.Get(ctx, k)
	if err == nil && given.Operation == "" {
		return f, notHash(ctx, h, store.Filter{Tenant: k.Tenant}, k.Value, f.Record.Key)
	}
	if hash, ok := shortHash(k.Value); ok && errors.Is(err, store.ErrNotFound) {
		if f, err := lookByHash(ctx, h, store.Filter{Operation: given.Operation, Tenant: k.Tenant}, hash); !errors.Is(err, store.ErrNotFound) {
			return f, err
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		of := k
		if of.Operation += protocol.SagaSuffix; !protocol.IsSaga(k) {
			if _, err := h.Get(ctx, of); err == nil {
				return f, noRecordError(fmt.Sprintf("there is no record of operation %q with this key, but a saga has it: give --operation '%s'", k.Operation, of.Operation))
			}
		}
		return f, notFound(ctx, h, given)
	}
	return f, err
}

const (
	shortDigits  = 8  // of the hash that logs show instead of a key
	hashedDigits = 64 // of a tenant or key that is stored as a hash
)

// isHash reports whether a text can be a hash with so many digits.
func isHash(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// shortHash is the hash that a text can be, in the form of Key.Short.
func shortHash(s string) (hash string, ok bool) {
	hash = strings.ToLower(s)
	return hash, isHash(hash, shortDigits)
}

// stepView is a recorded step of a call as operators see it.
type stepView struct {
	Name     string    `json:"name"`
	Recorded time.Time `json:"recorded"`
	Attempt  int       `json:"attempt"`
	Failed   bool      `json:"failed,omitempty"` // a final failure, which is kept
	Result   answer    `json:"result"`
	// At.Key of a step of a saga, or of its compensation.
	DownstreamKey string `json:"downstream_key,omitempty"`

	decision *decisionView // of an operator about a saga, which the step keeps
}

// lookWithSteps finds a record and its steps, of one moment.
func lookWithSteps(ctx context.Context, st store.Store, k store.Key) (f store.Found, steps []store.Step, err error) {
	const tries = 5
	for range tries {
		if f, err = look(ctx, st, k); err != nil {
			return f, nil, err
		}
		if steps, err = stepsOf(ctx, st, &f.Record); !errors.Is(err, store.ErrLeaseLost) {
			return f, steps, err
		}
	}
	return f, nil, fmt.Errorf("the record changes too often to read it together with its steps: %w", err)
}

// stepsOf reads the steps of a record. store.ErrLeaseLost: it has changed since.
func stepsOf(ctx context.Context, st store.Store, r *store.Record) ([]store.Step, error) {
	j, ok := store.As[store.Journal](st)
	if !ok {
		return nil, nil
	}
	return j.Steps(ctx, r.Lease())
}

func (v *view) isSaga() bool { return strings.HasSuffix(v.Operation, protocol.SagaSuffix) }

// addSteps adds the steps of the record to its view.
func (v *view) addSteps(steps []store.Step, showBody bool) {
	for i := range steps {
		s := &steps[i]
		o := stepView{
			Name: s.Name, Recorded: s.Recorded, Attempt: s.Attempt, Failed: s.Failed,
			Result: answer{Status: s.Outcome.Code, Codec: s.Outcome.Codec, Bytes: len(s.Outcome.Body), NotKept: s.Outcome.Gone},
		}
		switch {
		case !showBody:
		case utf8.Valid(s.Outcome.Body):
			o.Result.Body = string(s.Outcome.Body)
		default:
			o.Result.BodyBase64 = base64.StdEncoding.EncodeToString(s.Outcome.Body)
		}
		if v.isSaga() {
			o.decision, o.DownstreamKey = decisionIn(s), sagaStepKey(v.key(), s.Name)
		}
		if o.decision != nil {
			v.Decisions = append(v.Decisions, *o.decision)
		}
		v.Steps = append(v.Steps, o)
	}
}

// String is the step in one line.
func (s *stepView) String() string {
	what := "done"
	if s.Failed {
		what = "failed for good"
	}
	text := fmt.Sprintf("%s %s, %s", what, s.when(), s.Result.String())
	if s.Result.Body != "" {
		text += ": " + s.Result.Body
	}
	if s.DownstreamKey != "" {
		text += ", its downstream key: " + s.DownstreamKey
	}
	return text
}

// when is the time and the attempt.
func (s *stepView) when() string {
	text := "at " + s.Recorded.Format(time.RFC3339Nano)
	if s.Attempt > 0 { // an operator's decision belongs to none
		text += fmt.Sprintf(" in attempt %d", s.Attempt)
	}
	return text
}

// ambiguousError is the hash of several keys, and lists them.
type ambiguousError string

func (e ambiguousError) Error() string { return string(e) }

// Unwrap says that nothing can have been changed.
func (ambiguousError) Unwrap() error { return errRefused }

// WithoutNames implements audit.Named.
func (ambiguousError) WithoutNames() string { return "several keys have this hash" }

// lookByHash finds the record whose key has a hash, among the records of the filter. If several
// keys have the hash, the error lists them.
func lookByHash(ctx context.Context, h store.Store, among store.Filter, hash string) (store.Found, error) {
	l, ok := store.As[store.Lister](h)
	if !ok {
		return store.Found{}, store.ErrNotFound
	}
	var found []store.Found
	for f, err := range l.List(ctx, among) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
		case err != nil:
			return store.Found{}, err
		case f.Record.Key.Short() == hash:
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return store.Found{}, store.ErrNotFound
	case 1:
		return found[0], nil
	}
	var names []string
	for i := range found {
		names = append(names, flagsOf(found[i].Record.Key))
	}
	return store.Found{}, ambiguousError(fmt.Sprintf("several keys have the hash %s; name one of them: %s", hash, strings.Join(names, "; or ")))
}

// flagsOf are the key, the operation and the tenant as the commands take them.
func flagsOf(k store.Key) string {
	return strings.TrimPrefix(shell.Command("", []string{k.Value}, shell.Flag("operation", k.Operation), shell.Flag("tenant", k.Tenant)), " ")
}

// notHash returns an error if the name under which a record was found is the hash of another
// key, too: a client can use such a hash as its key, and so hide the other record.
func notHash(ctx context.Context, h store.Store, among store.Filter, name string, found store.Key) error {
	hash, ok := shortHash(name)
	if !ok {
		return nil
	}
	switch other, err := lookByHash(ctx, h, among, hash); {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case errors.Is(err, errRefused): // several
		return ambiguousError(fmt.Sprintf("there is a key %s, and %v", flagsOf(found), err))
	case err != nil:
		return err
	case other.Record.Key == found:
		return nil
	default:
		return ambiguousError(fmt.Sprintf("there is a key %s, and another key has the hash %s; name one of them: %s; or %s", name, hash, flagsOf(other.Record.Key), flagsOf(found)))
	}
}
