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
		w := packed(t, &want)
		texts := textsOf(&want.Key, want.Holder, &want.Fingerprint)
		others := textsOf(&want.Key, "another", &want.Fingerprint)
		for _, has := range []*claimed{nil, &texts, &others} {
			if got := w.record(has); !reflect.DeepEqual(got, want) {
				t.Errorf("%s came back as %+v, want %+v", name, got, want)
			}
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

// packed is a row in memory that has just the size for it.
func packed(t *testing.T, r *store.Record) row {
	t.Helper()
	mem := make([]byte, rowSize(r)+1)
	pack(r, mem[:len(mem)-1])
	w := rowAt(mem)
	if len(w) != len(mem)-1 || mem[len(w)] != 0 {
		t.Errorf("a row of %d bytes was written, want %d", len(w), len(mem)-1)
	}
	return w
}

// A length takes one byte more from each power of 128 on.
func TestTheSizeOfTextsIsExact(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 1<<14 - 1, 1 << 14, 1<<21 - 1, 1 << 21} {
		text := strings.Repeat("x", n)
		w := writer{mem: make([]byte, n+10)}
		w.text(text)
		if got, want := textSize(text), w.at; got != want {
			t.Errorf("textSize of %d bytes is %d, want %d", n, got, want)
		}
	}
}

// An append to a body that was handed out must not write where another reads.
func TestABodyHasNoRoom(t *testing.T) {
	r := store.Record{Outcome: store.Outcome{Body: []byte("body")}}
	got := packed(t, &r).record(nil)
	if body := got.Outcome.Body; len(body) != 4 || cap(body) != 4 {
		t.Errorf("the body has %d bytes and room for %d, want 4 and 4", len(body), cap(body))
	}
}
