package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/audit"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/cmd/semel/internal/shell"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

type inspectCmd struct {
	List    inspectListCmd    `cmd:"" help:"List records."`
	Get     inspectGetCmd     `cmd:"" help:"Show one record."`
	Resolve inspectResolveCmd `cmd:"" help:"Say what became of a parked request."`
	Reopen  inspectReopenCmd  `cmd:"" help:"Let a failed request run again."`
}

// storeFlag is common to the commands of inspect.
type storeFlag struct {
	Store string `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store: sqlite:PATH, postgres://USER@HOST/DATABASE, redis://HOST:PORT/0 or dynamodb://TABLE?region=REGION (default ${default})."`
	Keys  string `name:"encryption-keys" placeholder:"FILE" help:"The keys with which the records are encrypted, as for semel proxy (default: they are shown as they are stored)."`
}

// with runs fn with the store, which must exist. log may be nil if no keys are given.
func (c *storeFlag) with(ctx context.Context, log *slog.Logger, fn func(storeurl.Handle) error) (err error) {
	return c.withRole(ctx, log, 0, fn)
}

// sagaStoreFlag is the storeFlag of the commands of saga.
type sagaStoreFlag struct{ storeFlag }

// with runs fn with the store, as storeFlag does. If there is none, the error does not offer to
// make one, because it would have no sagas.
func (c *sagaStoreFlag) with(ctx context.Context, log *slog.Logger, fn func(storeurl.Handle) error) (err error) {
	return c.withRole(ctx, log, storeurl.SagasSeen, fn)
}

func (c *storeFlag) withRole(ctx context.Context, log *slog.Logger, role storeurl.Role, fn func(storeurl.Handle) error) (err error) {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	if u, err = u.Encrypted(c.Keys, "--encryption-keys", false, log); err != nil {
		return err
	}
	return with(ctx, u.For(role), fn)
}

// with runs fn with a store, which must exist.
func with(ctx context.Context, u storeurl.URL, fn func(storeurl.Handle) error) (err error) {
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return fn(h)
}

// keyFlags name one record.
type keyFlags struct {
	hashFlag
	Key       raw `arg:"" help:"The idempotency key, without quotes."`
	Operation raw `name:"operation" placeholder:"NAME" help:"The operation of the key (default http, as in semel proxy). If KEY is a hash from a log, the default is every operation."`
	Tenant    raw `name:"tenant" placeholder:"NAME" help:"The tenant of the key; leave it out for scope single."`
}

// find finds the record that the flags name. With a secret, tenant and key are as clients
// send them, or as they are stored.
func (c *keyFlags) find(ctx context.Context, h store.Store) (store.Found, error) {
	k := store.Key{Operation: string(c.Operation), Tenant: string(c.Tenant), Value: string(c.Key)}
	secret, err := c.secret()
	if err != nil {
		return store.Found{}, err
	}
	if secret != nil {
		hashed := withOperation(k).Hashed(secret)
		f, err := h.Get(ctx, hashed)
		if err == nil && k.Operation == "" {
			return f, notHash(ctx, h, store.Filter{Tenant: hashed.Tenant}, k.Value, hashed)
		}
		if hash, ok := shortHash(k.Value); ok && errors.Is(err, store.ErrNotFound) {
			f, err = lookByHash(ctx, h, store.Filter{Operation: k.Operation, Tenant: hashed.Tenant}, hash)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return f, err
		}
	}
	return look(ctx, h, k)
}

// withOperation returns k with the operation of semel proxy, if it has none.
func withOperation(k store.Key) store.Key {
	k.Operation = cmp.Or(k.Operation, "http")
	return k
}

// notFound says where a record can be that is not there under its name. Operation and
// tenant of given are empty if they were not given.
func notFound(ctx context.Context, h store.Store, given store.Key) error {
	k := withOperation(given)
	searched, tenant := fmt.Sprintf("operation %q, tenant %q, this key", k.Operation, k.Tenant), ""
	if k.Tenant == "" {
		searched, tenant = fmt.Sprintf("operation %q, no tenant, this key", k.Operation), ". If the key is of a tenant, give --tenant"
	}
	var limits []string
	if given.Operation != "" {
		limits = append(limits, "operation")
	}
	if given.Tenant != "" {
		limits = append(limits, "tenant")
	}
	hash, isHash := shortHash(k.Value)
	switch {
	case isHash && len(limits) > 0:
		searched += fmt.Sprintf("; nor is there another key of this %s with this hash", strings.Join(limits, " and "))
		_, err := lookByHash(ctx, h, store.Filter{}, hash)
		if err == nil || errors.Is(err, errRefused) { // one key, or several
			return noRecordError(fmt.Sprintf("not found: %s. A key of another %s has it: leave out --%s", searched, strings.Join(limits, " or "), strings.Join(limits, " and --")))
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	case isHash:
		searched += "; nor is there another key with this hash"
	case k.Value != "" && strings.Trim(k.Value, "0123456789abcdefABCDEF") == "":
		searched += ", which is no hash from a log either: a hash has 8 hexadecimal digits"
	}
	if protocol.IsSaga(k) {
		return sagaNotFound(k)
	}
	if given.Operation == "" {
		tenant += `. The operation "http" is only the default, and semel proxy's. A service in Go and semel deliver have others, such as "POST /payments": give --operation; semel inspect list shows it`
	}
	return noRecordError(fmt.Sprintf("not found: %s%s. The record may have expired, or have been erased: the audit trail of semel erase (its --audit) says so. "+
		"semel inspect list shows all records; for a saga give --operation 'NAME%s'; if the store has hashes of keys, give --hash-keys-file", searched, tenant, protocol.SagaSuffix))
}

// noRecordError is store.ErrNotFound in other words.
type noRecordError string

func (e noRecordError) Error() string { return string(e) }

// Unwrap says that nothing can have been changed.
func (noRecordError) Unwrap() error { return store.ErrNotFound }

// WithoutNames implements audit.Named.
func (noRecordError) WithoutNames() string { return "there is no record with this key" }

// hashFlag is common to the commands that are given tenants or keys.
type hashFlag struct {
	HashKeysFile string `name:"hash-keys-file" placeholder:"FILE" help:"The secret with which tenants and keys are hashed, as for semel proxy: give them as clients send them. Without it give them as they are stored."`
}

// secret is the secret of the file, or nil.
func (c *hashFlag) secret() ([]byte, error) {
	return secrets.HashKeys(c.HashKeysFile, "--hash-keys-file")
}

// names are the names under which the records of k can be stored: as given and, with a
// secret, as hashes. An act names keys[main]: the hashes, unless the tenant as given is one
// already. A name without a key stands for all keys of its tenant.
func (c *hashFlag) names(k store.Key) (keys []store.Key, main int, err error) {
	secret, err := c.secret()
	if err != nil || secret == nil {
		return []store.Key{k}, 0, err
	}
	if !isHash(k.Tenant, hashedDigits) {
		main = 1
	}
	return []store.Key{k, k.Hashed(secret)}, main, nil
}

// act carries out what an operator has asked for. With --audit it writes an entry before
// and after it, and refuses it if that is not possible. The caller logs the result.
func (e *env) act(a audit.Act, fn func() error) (result string, err error) {
	trail, err := e.openTrail()
	if err != nil {
		return acts.NotDone, err
	}
	a.Operator, a.Via = operator(e), acts.ViaCommand
	result, err = trail.Do(a, fn)
	return result, errors.Join(err, trail.Close())
}

// logAct writes a line of JSON about an act to standard error. A person at a terminal gets
// a refusal once, as the error of the command.
func (e *env) logAct(act, result string, err error, attrs ...any) {
	if result == acts.NotDone && err != nil && !e.json && isTerminal(e.stderr) {
		return
	}
	log := slog.New(slog.NewJSONHandler(e.stderr, nil))
	acts.Log(context.Background(), log, act, acts.ViaCommand, result, err, append([]any{"operator", operator(e)}, attrs...)...)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// openTrail opens the audit trail; nil without --audit.
func (e *env) openTrail() (*audit.Trail, error) {
	trail, err := audit.Open(e.audit)
	return trail, e.trailError(err)
}

// checkTrail refuses an audit trail that cannot be written. It writes nothing.
func (e *env) checkTrail() error {
	if e.audit == "" {
		return nil
	}
	f, err := os.OpenFile(e.audit, os.O_APPEND|os.O_WRONLY, 0)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrNotExist):
		_, err = os.Stat(filepath.Dir(e.audit) + string(filepath.Separator))
	}
	return e.trailError(err)
}

// trailError says why an act is refused whose audit trail cannot be opened.
func (e *env) trailError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errRefused, wrong("--audit", e.audit, "its folder does not exist; make it with: mkdir -p "+shell.Word(filepath.Dir(e.audit))))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, wrong("--audit", e.audit, "cannot be written: "+err.Error()))
	}
	return nil
}

// actOn is an act about the record of a key.
func (c *storeFlag) actOn(name string, k store.Key, fence uint64, reason string, detail map[string]any) audit.Act {
	return audit.Act{
		Act: name, Store: storeName(c.Store), Record: audit.RecordOf(k), Fence: fence, Reason: reason, Detail: detail,
	}
}

// consoleAct is an act of somebody who uses the console.
func consoleAct(a *console.Act, st string) audit.Act {
	entry := audit.Act{Act: a.Verb, Via: acts.ViaConsole, Operator: a.Operator, Store: storeName(st), Position: a.Position, Reason: a.Reason}
	if a.Position == 0 {
		entry.Record, entry.Fence = audit.RecordOf(a.Key), a.Fence
	}
	switch {
	case a.Verdict != "":
		entry.Detail = map[string]any{"verdict": a.Verdict}
	case strings.HasPrefix(a.Verb, "saga "):
		entry.Detail = map[string]any{"step": a.Step, "not_happened": a.NotHappened}
	}
	return entry
}

// storeName is the URL of a store without a password.
func storeName(text string) string {
	u, err := storeurl.Parse(text, "--store")
	if err != nil {
		return "" // it is not used: the store was opened by this URL
	}
	return u.String()
}

// flags are the flags that name the store again.
func (c *storeFlag) flags() string {
	var s string
	if c.Store != "sqlite:semel.db" {
		s += shell.Flag("store", storeName(c.Store))
	}
	if c.Keys != "" {
		s += shell.Flag("encryption-keys", c.Keys)
	}
	return s
}
