package memstore

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func TestARowGivesBackTheRecord(t *testing.T) {
	at := func(n int) time.Time { return time.UnixMicro(int64(n) * 1e12).UTC() }
	full := store.Record{
		Key: store.Key{Operation: "op", Tenant: "tenant", Value: "value"}, State: store.Completed, Policy: store.Park, Fence: 1 << 63,
		Owner: store.Owner{1, 15: 16}, Holder: "holder", Fingerprint: store.Fingerprint{Alg: "alg", KeyID: "id", Sum: "\x00\xff"},
		Attempt: 3, Until: at(1), Created: at(2), Updated: at(3), Completed: at(4), Expires: at(5), LastError: "last", Format: 1,
		Outcome: store.Outcome{Code: -2, Codec: "json", Gone: true, Body: []byte("body"), Header: []store.Header{
			{Name: "A", Value: ""}, {Name: "", Value: "b"}, {Name: "Long", Value: strings.Repeat("x", 300)}, {Name: "Longer", Value: strings.Repeat("y", 1<<15)},
		}},
	}
	for name, want := range map[string]store.Record{"full": full, "zero": {}, "a key alone": {Key: store.Key{Value: "v"}}} {
		var w row
		w.pack(&full) // what was there before leaves nothing behind
		w.pack(&want)
		if got := w.record(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s came back as %+v, want %+v", name, got, want)
		}
		k := want.Key
		if !w.is(&k) {
			t.Errorf("%s is not its key's", name)
		}
		for _, other := range []store.Key{{Operation: k.Operation + "x", Tenant: k.Tenant, Value: k.Value},
			{Operation: k.Operation, Tenant: k.Tenant + "x", Value: k.Value}, {Operation: k.Operation, Tenant: k.Tenant, Value: k.Value + "x"}} {
			if w.is(&other) {
				t.Errorf("%s is also %v's", name, other)
			}
		}
	}
}

// The collector looks at nothing behind a value's last pointer, and not at
// all at the texts.
func TestTheCollectorHasLittleToLookAt(t *testing.T) {
	w := reflect.TypeFor[row]()
	pointers := 0
	for i := range w.NumField() {
		switch f := w.Field(i); f.Type.Kind() {
		case reflect.String, reflect.Slice, reflect.Pointer:
			pointers++
			if i >= 5 {
				t.Errorf("the pointer %s is not among the first fields", f.Name)
			}
		case reflect.Map, reflect.Interface, reflect.Struct, reflect.Func, reflect.Chan:
			t.Errorf("%s may hold pointers", f.Name)
		}
	}
	if pointers > 5 {
		t.Errorf("a row has %d pointers", pointers)
	}
}
