package nearcache

import (
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func fullRecord() store.Record {
	at := func(n int) time.Time { return store.Time(int64(n) * 1e12) }
	return store.Record{
		Key: store.Key{Operation: "op", Tenant: "t\x01", Value: "\xff"}, State: store.Failed, Policy: store.Park, Fence: 1<<63 + 7, Owner: store.Owner{1, 15: 16},
		Holder: "h", Fingerprint: store.Fingerprint{Alg: "a", KeyID: "k", Sum: "\x00\xff"}, Attempt: 3, LastError: "last", Created: at(2), Updated: at(3),
		Completed: at(4), Expires: at(50), Format: 1, Outcome: store.Outcome{Code: -2, Codec: "json", Gone: true, Body: []byte("body\x00"), Header: []store.Header{
			{Name: "A", Value: ""}, {Name: "A", Value: "\xfe"}, {}}},
		FormerOwners: []store.FormerOwner{{Owner: store.Owner{7}, Holder: "\xff", Fence: 9, Attempt: 2, State: store.Released, Next: store.Processing, Ended: at(1)}},
	}
}

// inFront is what the front returns of an entry that was written to it, a second
// later.
func inFront(e *entry, clock time.Time, life time.Duration) store.Found {
	now := store.Time(77e12)
	p := frontProposal(e.record.Key, e.record.Fence)
	p.Holder, p.Fingerprint = e.record.Holder, e.record.Fingerprint
	settlement := e.settlement(clock, life, 0)
	return store.Found{Record: settlement.Apply(p.Insert(now, 0), now), Now: now.Add(time.Second)}
}

func TestParseFront_WrittenEntry_ReturnsRecord(t *testing.T) {
	small := store.Record{Key: store.Key{Value: "v"}, State: store.Completed, Expires: store.Time(9e12), Format: 1}
	for name, want := range map[string]store.Record{"full": fullRecord(), "small": small} {
		for _, estimated := range []bool{false, true} {
			e := newEntry(&want)
			e.estimated = estimated
			f := inFront(e, store.Time(5e12), time.Minute)
			v, ok := parseFront(&f, want.Key)
			if len(v.record.Outcome.Header) == 0 {
				v.record.Outcome.Header = nil
			}
			if !ok || !reflect.DeepEqual(v.record, want) {
				t.Errorf("%s: %v\n%+v, want\n%+v", name, ok, v.record, want)
			}
			if m := v.meta; m.Estimated != estimated || m.Life != time.Minute || store.Time(m.Clock) != store.Time(5e12) || v.age != time.Second {
				t.Errorf("%s: %+v, age %v", name, m, v.age)
			}
		}
	}
}

func TestParseFront_DamagedMeta_IsMiss(t *testing.T) {
	r := fullRecord()
	whole := inFront(newEntry(&r), store.Time(5e12), time.Minute)
	meta := &whole.Record.Outcome.Header[3].Value
	for text, n := *meta, 0; n < len(text); n++ {
		*meta = text[:n]
		if v, ok := parseFront(&whole, r.Key); ok {
			t.Errorf("%d bytes of %d are read as %+v", n, len(text), v)
		}
	}
}
