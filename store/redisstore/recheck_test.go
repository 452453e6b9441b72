package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// A record may change after a sweep has read it. The sweep script checks it again,
// and leaves a record that has neither expired nor lapsed.
func TestSweep_RecordChangedSinceRead_LeavesIt(t *testing.T) {
	s := openNew(t, nil)
	end := func(state store.State, keep time.Duration) func(r store.Record) {
		return func(r store.Record) {
			t.Helper()
			if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: state, Attempt: 1, Keep: keep}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		then         func(r store.Record)
		gone, lapsed bool
	}{
		"held":      {then: func(store.Record) {}},
		"lapsed":    {lapsed: true, then: func(r store.Record) { _, _ = s.Renew(t.Context(), []store.Lease{r.Lease()}, -time.Second) }},
		"kept":      {then: end(store.Completed, time.Hour)},
		"released":  {then: end(store.Released, time.Hour)},
		"parked":    {then: end(store.Unknown, 0)},
		"completed": {gone: true, then: end(store.Completed, 0)},
		"failed":    {gone: true, then: end(store.Failed, 0)},
	} {
		r := claim(t, s, name)
		c.then(r)
		record, _ := s.name(r.Key.Digest())
		is := s.onNode(t.Context(), node{client: s.client}, &s.scripts.sweep, []string{record})[0]
		_, handed := is.val.(string)
		if is.err != nil || (is.val == int64(1)) != c.gone || handed != c.lapsed {
			t.Errorf("%s: a %T, error %v; deleted must be %v, handed back %v", name, is.val, is.err, c.gone, c.lapsed)
		}
		if _, err := s.Get(t.Context(), r.Key); errors.Is(err, store.ErrNotFound) != c.gone {
			t.Errorf("%s: %v", name, err)
		}
	}
}
