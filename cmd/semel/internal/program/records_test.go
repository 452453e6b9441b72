package program_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// oneKey is encrypted.Keys with a single key.
type oneKey string

func (k oneKey) Current(context.Context) (string, []byte, error) {
	return string(k), bytes.Repeat([]byte{1}, 32), nil
}

func (k oneKey) Key(_ context.Context, id string) ([]byte, error) {
	if id != string(k) {
		return nil, encrypted.ErrUnknownKey
	}
	return bytes.Repeat([]byte{1}, 32), nil
}

func cipher(id string) *encrypted.Cipher {
	if id == "" {
		return nil
	}
	return &encrypted.Cipher{Keys: oneKey(id)}
}

// keyed are secrets with these IDs.
func keyed(ids ...string) (list []semel.Secret) {
	for _, id := range ids {
		list = append(list, semel.Secret{ID: id, Key: bytes.Repeat([]byte(id), 16)})
	}
	return list
}

func TestWarnRecords_WrittenWithOtherOptions_NamesTheOption(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte("s"), 32)
	for name, c := range map[string]struct {
		wrote                 []byte // the secret of the process that wrote
		encrypted, operation  string
		hashed                bool
		reads, tenant, expect string
		wroteSecret           []semel.Secret
		secrets               []semel.Secret
	}{
		"equal, plain":            {expect: ""},
		"equal, hashed":           {wrote: secret, hashed: true},
		"equal, hashed, shared":   {wrote: secret, hashed: true, tenant: semel.Shared},
		"equal, encrypted":        {encrypted: "a", reads: "a"},
		"plain, now hashed":       {hashed: true, expect: "from before --hash-keys-file"},
		"hashed, now plain":       {wrote: secret, expect: "--hash-keys-file is not set"},
		"encrypted, without keys": {encrypted: "a", expect: "--encryption-keys is not set"},
		"encrypted, another key":  {encrypted: "a", reads: "b", expect: "a key that is not in the file of --encryption-keys"},
		"of another program":      {hashed: true, operation: "mail"},
		"equal, keyed":            {wroteSecret: keyed("b"), secrets: keyed("a", "b")},
		"unkeyed, now keyed":      {secrets: keyed("a")},
		"keyed, without secrets":  {wroteSecret: keyed("b"), expect: "--secret-file is not set: their duplicates are refused. Start with the file of the processes that wrote them\" missing=b"},
		"keyed, another secret":   {wroteSecret: keyed("b"), secrets: keyed("a"), expect: "a secret that is not in the file of --secret-file"},
	} {
		st := memstore.New(nil)
		g, err := semel.New(st, &semel.Options{HashKeys: c.wrote, Secrets: c.wroteSecret, Encryption: cipher(c.encrypted)})
		if err != nil {
			t.Fatal(err)
		}
		call := semel.Call{Operation: "http", Tenant: "ann", Key: "k", Payload: semel.JSON(1)}
		if c.operation != "" {
			call.Operation = c.operation
		}
		if c.tenant != "" {
			call.Tenant = c.tenant
		}
		if _, err := semel.Do(t.Context(), g, call, func(context.Context, *semel.Execution) (string, error) { return "done", nil }); err != nil {
			t.Fatal(err)
		}
		var read store.Store = st
		if c.reads != "" {
			read = cipher(c.reads).Store(st)
		}
		var log strings.Builder
		program.WarnRecords(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), read, c.hashed, c.secrets, "http", "pay")
		if text := log.String(); (text == "") != (c.expect == "") || !strings.Contains(text, c.expect) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// slowStore lists nothing until the context ends.
type slowStore struct{ store.Store }

func (slowStore) List(ctx context.Context, _ store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		<-ctx.Done()
		yield(store.Found{}, ctx.Err())
	}
}

// endlessStore lists unreadable records without end, whatever the limit.
type endlessStore struct{ store.Store }

func (endlessStore) List(context.Context, store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for yield(store.Found{}, store.ErrCorrupt) {
		}
	}
}

func TestWarnRecords_StoreSlowOrLarge_StartsSoonWithoutWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, st := range []store.Store{slowStore{memstore.New(nil)}, endlessStore{memstore.New(nil)}, struct{ store.Store }{nil}} {
			var log strings.Builder
			began := time.Now()
			program.WarnRecords(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), st, true, nil, "http")
			if took := time.Since(began); took > time.Second || log.Len() > 0 {
				t.Errorf("%T: after %v: %s", st, took, log.String())
			}
		}
	})
}
