package store_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func TestMicros_AndTime_AreInverse(t *testing.T) {
	for _, c := range []struct {
		in     time.Time
		micros int64
		out    time.Time
	}{
		{time.Time{}, 0, time.Time{}},
		{time.Unix(1, 1999).UTC(), 1_000_001, time.Unix(1, 1000).UTC()},
		{time.Unix(1, 999).In(time.FixedZone("x", 3600)), 1_000_000, time.Unix(1, 0).UTC()},
		{time.Unix(-1, 0).UTC(), -1_000_000, time.Unix(-1, 0).UTC()},
		{noon, noon.Unix() * 1e6, noon},
	} {
		if m := store.Micros(c.in); m != c.micros {
			t.Errorf("Micros(%v) is %d, want %d", c.in, m, c.micros)
		}
		if back := store.Time(c.micros); back != c.out {
			t.Errorf("Time(%d) is %#v, want %#v", c.micros, back, c.out)
		}
	}
	now := time.Now() // with a monotonic reading and a zone
	if back := store.Time(store.Micros(now)); back != store.Time(store.Micros(back)) || back.Sub(now).Abs() > time.Microsecond {
		t.Errorf("%v becomes %#v, which differs by more than a microsecond", now, back)
	}
}

func TestRecord_ReachesItsEnd_IsLapsedOrExpired(t *testing.T) {
	for s := store.Started; s <= store.Unknown; s++ {
		r := recordIn(s)
		for _, end := range []time.Time{r.Until, r.Expires} {
			if end.IsZero() {
				continue
			}
			for d, reached := range map[time.Duration]bool{-time.Microsecond: false, 0: true, time.Microsecond: true} {
				now := end.Add(d)
				lapses := (s == store.Started || s == store.Processing) && end.Equal(r.Until)
				if got := r.Lapsed(now); got != (lapses && reached) {
					t.Errorf("a %v record, %v after its end: Lapsed is %v", s, d, got)
				}
				if end.Equal(r.Expires) && r.Expired(now) != reached {
					t.Errorf("a %v record, %v after Expires: Expired is %v", s, d, r.Expired(now))
				}
			}
		}
		if r.Expires.IsZero() && r.Expired(noon.Add(1000*time.Hour)) {
			t.Errorf("a %v record without Expires is expired", s)
		}
	}
}

func TestRecord_SeenAndLease_HaveItsFields(t *testing.T) {
	r := recordIn(store.Released)
	if got, want := r.Seen(), (store.Seen{Key: r.Key, State: r.State, Owner: r.Owner, Fence: r.Fence, Until: r.Until, Expires: r.Expires}); got != want {
		t.Errorf("Seen is %+v, want %+v", got, want)
	}
	if got, want := r.Lease(), (store.Lease{Key: r.Key, Owner: r.Owner, Fence: r.Fence}); got != want {
		t.Errorf("Lease is %+v, want %+v", got, want)
	}
}

// variants are outcomes that all differ.
func variants() []store.Outcome {
	h := func(kv ...string) (lines []store.Header) {
		for i := 0; i < len(kv); i += 2 {
			lines = append(lines, store.Header{Name: kv[i], Value: kv[i+1]})
		}
		return lines
	}
	return []store.Outcome{
		{}, {Code: 200}, {Codec: "json"}, {Gone: true}, {Body: []byte("a")}, {Body: []byte("b")}, {Body: []byte("ab")}, {Body: []byte{0}},
		{Header: h("A", "1")}, {Header: h("a", "1")}, {Header: h("A", "2")}, {Header: h("A", "1", "A", "2")}, {Header: h("A", "2", "A", "1")},
		{Header: h("A", "1, 2")}, {Header: h("A", "1", "B", "1")}, {Header: h("A", "")}, {Header: h("B", "1", "A", "1")},
	}
}

func TestOutcome_SameAnswer_IsEqual(t *testing.T) {
	for i, a := range variants() {
		for j, b := range variants() {
			if got := a.Equal(b); got != (i == j) {
				t.Errorf("%+v and %+v: equal %v", a, b, got)
			}
		}
		if !a.Equal(a.Clone()) {
			t.Errorf("%+v is not equal to its clone", a)
		}
	}
	empty := store.Outcome{Body: []byte{}, Header: []store.Header{}}
	if !empty.Equal(store.Outcome{}) || !(store.Outcome{}).Equal(empty) {
		t.Error("nil and empty differ")
	}
}

func TestOutcome_Clone_SharesNoMemory(t *testing.T) {
	o := store.Outcome{Code: 1, Body: []byte("body"), Header: []store.Header{{Name: "A", Value: "1"}}, Codec: "json", Gone: true}
	c := o.Clone()
	c.Body[0], c.Header[0].Value = 'X', "X"
	if string(o.Body) != "body" || o.Header[0].Value != "1" {
		t.Errorf("changing a clone changed the original: %+v", o)
	}
	c = store.Outcome{Body: make([]byte, 3, 100)}.Clone()
	one, two := append(c.Body, 1), append(c.Body, 2)
	if one[3] != 1 || two[3] != 2 {
		t.Error("two appends to a clone's body share memory")
	}
	if c := (store.Outcome{}).Clone(); c.Body != nil || c.Header != nil {
		t.Errorf("the clone of the zero Outcome is %+v, want nil slices", c)
	}
}

func TestFingerprint_MadeDifferently_IsNotComparable(t *testing.T) {
	f := store.Fingerprint{Alg: "a", KeyID: "k", Sum: "sum"}
	for _, c := range []struct {
		g                 store.Fingerprint
		comparable, equal bool
	}{
		{f, true, true},
		{store.Fingerprint{Alg: "a", KeyID: "k", Sum: "sun"}, true, false},
		{store.Fingerprint{Alg: "a", KeyID: "k", Sum: "summ"}, true, false},
		{store.Fingerprint{Alg: "a", KeyID: "k"}, true, false},
		{store.Fingerprint{Alg: "b", KeyID: "k", Sum: "sum"}, false, true},
		{store.Fingerprint{Alg: "a", KeyID: "l", Sum: "sum"}, false, true},
	} {
		if f.Comparable(c.g) != c.comparable || c.g.Comparable(f) != c.comparable || f.Equal(c.g) != c.equal || c.g.Equal(f) != c.equal {
			t.Errorf("%+v and %+v: comparable %v, equal %v", f, c.g, f.Comparable(c.g), f.Equal(c.g))
		}
	}
}
