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
		w := pack(&want, nil)
		for _, has := range []claimed{{}, textsOf(&want.Key, want.Holder, &want.Fingerprint), textsOf(&want.Key, "another", &want.Fingerprint)} {
			if got := w.record(has); !reflect.DeepEqual(got, want) {
				t.Errorf("%s came back as %+v, want %+v", name, got, want)
			}
		}
		settled := want // without its texts, and with another's outcome
		settled.Key, settled.Holder, settled.Fingerprint, settled.Outcome = store.Key{}, "", store.Fingerprint{}, full.Outcome
		settled = pack(&settled, w).record(claimed{})
		if want := withOutcome(want, full.Outcome); !reflect.DeepEqual(settled, want) {
			t.Errorf("%s was settled as %+v, want %+v", name, settled, want)
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

func withOutcome(r store.Record, o store.Outcome) store.Record {
	r.Outcome = o
	return r
}

// A short outcome goes where the claim has left room; a long one does not fit.
func TestASettlementUsesTheRoomOfItsClaim(t *testing.T) {
	claim := store.Record{Key: store.Key{Operation: "op", Value: "k"}, State: store.Processing, Holder: "h", Fence: 7}
	for body, inPlace := range map[string]bool{"short": true, strings.Repeat("long", room): false} {
		w := pack(&claim, nil)
		end := store.Record{State: store.Completed, Fence: 7, Outcome: store.Outcome{Code: 200, Codec: "json", Body: []byte(body)}}
		settled := pack(&end, w)
		want := withOutcome(claim, end.Outcome)
		want.State = store.Completed
		if got := settled.record(claimed{}); !reflect.DeepEqual(got, want) {
			t.Errorf("settled as %+v, want %+v", got, want)
		}
		if is := &settled[0] == &w[0]; is != inPlace {
			t.Errorf("an outcome of %d bytes is in the same memory: %v, want %v", len(body), is, inPlace)
		}
	}
}

// An append to a body that was handed out must not write where another reads.
func TestABodyHasNoRoom(t *testing.T) {
	r := store.Record{Outcome: store.Outcome{Body: []byte("body")}}
	got := pack(&r, nil).record(claimed{})
	if body := got.Outcome.Body; len(body) != 4 || cap(body) != 4 {
		t.Errorf("the body has %d bytes and room for %d, want 4 and 4", len(body), cap(body))
	}
}
