package encrypted_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleReadKeyFile() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "keys") // as made by: echo "2026-11 $(openssl rand -base64 32)"
	if err := os.WriteFile(path, []byte("2026-11 MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	keys, err := encrypted.ReadKeyFile(path, func(err error) { log.Print(err) })
	if err != nil {
		log.Fatal(err)
	}
	st := memstore.New(nil)
	guard, err := semel.New(st, &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}})
	if err != nil {
		log.Fatal(err)
	}
	call := semel.Call{Operation: "charge", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
	_, err = semel.Do(context.Background(), guard, call, func(context.Context, *semel.Execution) (string, error) { return "receipt of order-17", nil })
	fmt.Println(err)
	stored, err := st.Get(context.Background(), store.Key{Operation: "charge", Tenant: "ann", Value: "order-17"})
	fmt.Println(stored.Record.Outcome.Codec, bytes.Contains(stored.Record.Outcome.Body, []byte("receipt")), err)
	// Output:
	// <nil>
	// semel/encrypted false <nil>
}

// envelope gets keys that a key service has wrapped: only the service can unwrap them. It
// asks the service for each key at its first use, and keeps the answer in memory.
type envelope struct {
	// Unwrap is the call of the service, such as Decrypt of AWS KMS, Google Cloud KMS or
	// Vault's transit engine.
	unwrap  func(ctx context.Context, wrapped []byte) (key []byte, err error)
	current string            // an ID
	wrapped map[string][]byte // by their IDs; they are no secret, so they may be in the configuration

	keys sync.Map // by their IDs: []byte
}

// Current implements encrypted.Keys.
func (e *envelope) Current(ctx context.Context) (id string, key []byte, err error) {
	key, err = e.Key(ctx, e.current)
	return e.current, key, err
}

// Key implements encrypted.Keys.
func (e *envelope) Key(ctx context.Context, id string) ([]byte, error) {
	wrapped, ok := e.wrapped[id]
	if !ok {
		return nil, fmt.Errorf("%w %q", encrypted.ErrUnknownKey, id)
	}
	if key, ok := e.keys.Load(id); ok {
		return key.([]byte), nil
	}
	key, err := e.unwrap(ctx, wrapped) // without a lock, so that calls under other keys do not wait for the service
	if err != nil {
		return nil, err // it is not kept: the next call asks again
	}
	e.keys.Store(id, key)
	return key, nil
}

// With a key service the keys are wrapped, and the service is asked once for each.
func ExampleKeys_keyService() {
	ctx := context.Background()
	questions := 0
	keys := &envelope{
		current: "2026-11",
		wrapped: map[string][]byte{"2026-11": []byte("what GenerateDataKey of the service has returned")},
		unwrap: func(_ context.Context, wrapped []byte) ([]byte, error) { // a service of an example
			if questions++; len(wrapped) < 32 {
				return nil, errors.New("it is not wrapped by this service")
			}
			return wrapped[:32], nil
		},
	}
	guard, err := semel.New(memstore.New(nil), &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		call := semel.Call{Operation: "charge", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
		receipt, err := semel.Do(ctx, guard, call, func(context.Context, *semel.Execution) (string, error) { return "receipt of order-17", nil })
		fmt.Println(receipt, err)
	}
	fmt.Println("the service was asked", questions, "time")
	// Output:
	// receipt of order-17 <nil>
	// receipt of order-17 <nil>
	// receipt of order-17 <nil>
	// the service was asked 1 time
}
