package nearcache

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func fullEnvelope() envelope {
	at := func(n int) time.Time { return store.Time(int64(n) * 1e12) }
	return envelope{clock: at(9), life: time.Minute, reckoned: true, record: store.Record{
		Key: store.Key{Operation: "op", Tenant: "t\x00", Value: "\xff"}, State: store.Failed, Policy: store.Park, Fence: 1<<63 + 7, Owner: store.Owner{1, 15: 16},
		Holder: "h", Fingerprint: store.Fingerprint{Alg: "a", KeyID: "k", Sum: "\x00\xff"}, Attempt: 3, Until: at(1), LastError: "last", Created: at(2), Updated: at(3),
		Completed: at(4), Expires: at(5), Format: 1, Outcome: store.Outcome{Code: -2, Codec: "json", Gone: true, Body: []byte("body\x00"), Header: []store.Header{
			{Name: "A", Value: ""}, {Name: "A", Value: "\xfe"}, {}}},
	}}
}

func TestAnEnvelopeGivesBackTheRecord(t *testing.T) {
	empty := envelope{}
	for name, v := range map[string]envelope{"full": fullEnvelope(), "empty": empty} {
		got, err := decode(v.encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.record.Outcome.Body) == 0 {
			got.record.Outcome.Body = nil
		}
		if !reflect.DeepEqual(*got, v) {
			t.Errorf("%s came back as\n%+v, want\n%+v", name, *got, v)
		}
	}
}

func TestHalfAnEnvelopeIsNone(t *testing.T) {
	full := fullEnvelope()
	b := full.encode()
	for n := range b {
		if v, err := decode(b[:n]); err == nil {
			t.Errorf("%d bytes of %d are read as %+v", n, len(b), v)
		}
	}
	if _, err := decode(append(b, 0)); err == nil {
		t.Error("a byte too many is accepted")
	}
}

func FuzzDecode(f *testing.F) {
	full := fullEnvelope()
	f.Add(full.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode(b)
		if err != nil {
			return
		}
		again := v.encode()
		w, err := decode(again)
		if err != nil || !bytes.Equal(again, w.encode()) {
			t.Errorf("%x is read, and %x is not the same: %v", b, again, err)
		}
	})
}
