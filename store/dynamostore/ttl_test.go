package dynamostore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// The janitor, DynamoDB's time to live, removes an expired record, and its key is
// claimed by a process whose clock is behind by the allowed skew: the fence grows.
func TestFence_RemovedByTimeToLive_Grows(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	o := Options{IndexShards: 1, MaxSkew: time.Minute, now: c.read}
	s := openNew(t, &o)
	behind := s.opt
	behind.now = func() time.Time { return c.read().Add(-s.opt.MaxSkew) }
	slow := openAgain(t, s, &behind)
	p := completion("x")
	p.Keep = 0
	for i, first := range []*Store{s, slow} {
		key := strconv.Itoa(i)
		was := claim(t, first, key)
		for range 3 { // each takeover raises the fence
			f, err := s.Swap(t.Context(), was.Seen(), proposal(key))
			if err != nil || !f.Won {
				t.Fatalf("swap: won %v, error %v", f.Won, err)
			}
			was = f.Record
		}
		if err := slow.Settle(t.Context(), was.Lease(), p); err != nil { // its Expires is behind the fence
			t.Fatal(err)
		}
		until := s.timeToLive(t, key)
		if early := until.Sub(c.read()); early < linger {
			t.Errorf("the janitor may remove the record after %v; it must stay readable for %v", early, linger)
		}
		c.advance(until.Sub(c.read())) // the earliest moment by DynamoDB's clock
		s.removeByTimeToLive(t, key)
		again := claim(t, slow, key)
		if again.Fence <= was.Fence {
			t.Errorf("after the janitor the fence went from %d to %d", was.Fence, again.Fence)
		}
	}
}

// timeToLive is when DynamoDB may remove a record.
func (s *Store) timeToLive(t testing.TB, value string) time.Time {
	t.Helper()
	it, err := s.read(t.Context(), testKey(value))
	if err != nil {
		t.Fatal(err)
	}
	d := decoder{it: it}
	seconds := d.number(s.opt.TTL)
	if d.err != nil {
		t.Fatal(d.err)
	}
	return time.Unix(seconds, 0)
}

// removeByTimeToLive removes a record as DynamoDB does, if its time has come.
func (s *Store) removeByTimeToLive(t testing.TB, value string) {
	t.Helper()
	e := newExpression()
	condition := e.name(s.opt.TTL) + " <= " + e.value(numberOf(s.clock.read().Unix()))
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: s.key(s.partition(testKey(value))), ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Records without an end of their own have no time to live, also after they had one.
func TestTimeToLive_RecordInFlightOrInDoubt_HasNone(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	has := func() bool {
		it, err := s.read(t.Context(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		return it[s.opt.TTL] != nil
	}
	for _, st := range []store.State{store.Released, store.Processing, store.Unknown, store.Processing, store.Completed} {
		if st != store.Processing {
			if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: st, Attempt: 1, Keep: time.Hour}); err != nil {
				t.Fatal(err)
			}
		} else {
			now := get(t, s, "k")
			f, err := s.Swap(t.Context(), now.Seen(), proposal("k"))
			if err != nil || !f.Won {
				t.Fatalf("swap: won %v, error %v", f.Won, err)
			}
			r = f.Record
		}
		if want := st == store.Released || st.Terminal(); has() != want {
			t.Errorf("a %v record has a time to live: %v, want %v", st, has(), want)
		}
	}
}

// An expired record that the janitor has not removed yet counts as absent, and one
// that has not expired counts, although the janitor could remove it at any time.
func TestExpiry_ItemStillThere_JudgedOnRead(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	s := openNew(t, &Options{IndexShards: 1, MaxSkew: time.Second, now: c.read})
	g, err := semel.New(s, &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute, Retention: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	run := func() {
		t.Helper()
		_, err := g.Run(t.Context(), semel.Call{Operation: "op", Tenant: "t", Key: "k", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) (store.Outcome, error) {
				ran++
				return store.Outcome{}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct {
		wait time.Duration
		ran  int
	}{{0, 1}, {time.Minute, 1}, {2 * time.Second, 2}} { // an outcome expires twice MaxSkew late
		c.advance(want.wait)
		if run(); ran != want.ran {
			t.Errorf("after %v more the handler has run %d times, want %d", want.wait, ran, want.ran)
		}
	}
}
