package encrypted_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// tenantKeys has one key for each tenant. The ID of a key is the tenant's number, and not
// its name, because the ID is stored in the clear.
type tenantKeys struct {
	mu      sync.Mutex
	numbers map[string]string // the IDs of the keys by their tenants
	keys    map[string][]byte // by their IDs; of a tenant that was forgotten there is none
}

// TenantCurrent implements encrypted.TenantKeys. The first call of a tenant makes its key.
func (k *tenantKeys) TenantCurrent(_ context.Context, tenant string) (id string, key []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, ok := k.numbers[tenant]
	if !ok {
		id = fmt.Sprint("tenant ", len(k.numbers)+1)
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		k.numbers[tenant], k.keys[id] = id, key
	}
	if key, ok = k.keys[id]; !ok {
		return "", nil, fmt.Errorf("%w %q: the tenant was forgotten", encrypted.ErrUnknownKey, id)
	}
	return id, key, nil
}

// Current implements encrypted.Keys. A Cipher does not call it.
func (k *tenantKeys) Current(ctx context.Context) (string, []byte, error) {
	return k.TenantCurrent(ctx, "")
}

// Key implements encrypted.Keys.
func (k *tenantKeys) Key(_ context.Context, id string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.keys[id]
	if !ok {
		return nil, fmt.Errorf("%w %q", encrypted.ErrUnknownKey, id)
	}
	return key, nil
}

// forget throws the key of a tenant away.
func (k *tenantKeys) forget(tenant string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, k.numbers[tenant])
}

func newTenantKeys() *tenantKeys {
	return &tenantKeys{numbers: map[string]string{}, keys: map[string][]byte{}}
}

// With a key for each tenant, a tenant is forgotten when its key is thrown away.
func ExampleTenantKeys() {
	ctx := context.Background()
	keys := newTenantKeys()
	guard, err := semel.New(memstore.New(nil), &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}})
	if err != nil {
		fmt.Println(err)
		return
	}
	charge := func(customer string) {
		call := semel.Call{Operation: "charge", Tenant: customer, Key: "order-17", Payload: semel.NoPayload()}
		receipt, err := semel.Do(ctx, guard, call, func(context.Context, *semel.Execution) (string, error) { return "receipt of " + customer, nil })
		fmt.Println(receipt, errors.Is(err, encrypted.ErrUnknownKey))
	}
	charge("ann")
	charge("bob")
	keys.forget("ann")
	charge("ann")
	charge("bob")
	// Output:
	// receipt of ann false
	// receipt of bob false
	//  true
	// receipt of bob false
}

// After the key of a tenant was thrown away, nobody can read its results, not in a copy of
// the store from before either, and no handler of the tenant runs. Another tenant's
// calls go on.
func TestTenantKeys_KeyThrownAway_ResultsUnreadableAndOthersGoOn(t *testing.T) {
	keys := newTenantKeys()
	st := memstore.New(nil)
	g, err := semel.New(st, &semel.Options{Encryption: &encrypted.Cipher{Keys: keys, RequireEncrypted: true}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(tenant, key string) (runs int, body string, _ error) {
		res, err := g.Run(t.Context(), semel.Call{Operation: "pay", Tenant: tenant, Key: key, Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			runs++
			_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { return canary + tenant, nil })
			return result(1), err
		})
		return runs, string(res.Outcome.Body), err
	}
	for _, tenant := range []string{"ann", "bob"} {
		if runs, _, err := run(tenant, "order-4711"); runs != 1 || err != nil {
			t.Fatalf("%s: ran %d times, %v", tenant, runs, err)
		}
	}
	idOf := func(tenant string) string {
		f, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: tenant, Value: "order-4711"})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := st.Steps(t.Context(), f.Record.Lease())
		if err != nil || len(steps) != 1 {
			t.Fatalf("%d steps, %v", len(steps), err)
		}
		if text := stored(&f.Record, steps); strings.Contains(text, canary) {
			t.Errorf("%s: the store has the result in the clear: %s", tenant, text)
		}
		id := string(f.Record.Outcome.Body[2:10])
		if !strings.Contains(string(steps[0].Outcome.Body), id) {
			t.Errorf("%s: the step is under another key than the result", tenant)
		}
		return id
	}
	if a, b := idOf("ann"), idOf("bob"); a == b || !strings.HasPrefix(a, "tenant ") {
		t.Errorf("the keys of ann and bob have the IDs %q and %q", a, b)
	}
	keys.forget("ann")

	backup := (&encrypted.Cipher{Keys: keys}).Store(st)
	k := store.Key{Operation: "pay", Tenant: "ann", Value: "order-4711"}
	f, err := backup.Get(t.Context(), k)
	wantRefused(t, "the result", err, k)
	if strings.Contains(stored(&f.Record, nil), canary) {
		t.Error("the result was returned")
	}
	_, err = journalOf(t, backup).Steps(t.Context(), f.Record.Lease())
	wantRefused(t, "the step", err, k)

	for _, key := range []string{"order-4711", "order-4712"} {
		if runs, body, err := run("ann", key); runs != 0 || body != "" || err == nil {
			t.Errorf("ann, key %q: ran %d times, got %q, error %v; want a refusal", key, runs, body, err)
		}
		if runs, body, err := run("bob", key); runs > 1 || !strings.Contains(body, canary) || err != nil {
			t.Errorf("bob, key %q: ran %d times, got %q, error %v; want the result", key, runs, body, err)
		}
	}
	if _, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "order-4712"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a new call of ann left a record: %v", err)
	}
	// Its records can still be erased, and expire, without the key.
	raw, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	eraser, ok := store.As[store.Eraser](backup)
	if !ok {
		t.Fatal("an encrypted store cannot erase, although its store can")
	}
	if err := eraser.Erase(t.Context(), raw.Record.Seen()); err != nil {
		t.Errorf("Erase: %v", err)
	}
}
