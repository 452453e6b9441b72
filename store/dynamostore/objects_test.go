package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// openObjects is a store with a bucket, and a Guard of it.
func openObjects(t testing.TB, o Options) (*Store, *bucket, *semel.Guard) {
	t.Helper()
	b := newBucket(t)
	o.IndexShards, o.Objects = 1, b
	s := openNew(t, &o)
	g, err := semel.New(s, &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s, b, g
}

// runLarge runs a call whose outcome is large, and counts its runs.
func runLarge(t testing.TB, r semel.Runner, key string, body []byte, ran *int) ([]byte, error) {
	t.Helper()
	res, err := r.Run(t.Context(), testCall(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
		*ran++
		return store.Outcome{Code: 201, Codec: "raw", Header: []store.Header{{Name: "Etag", Value: "x"}}, Body: body}, nil
	})
	return res.Outcome.Body, err
}

func TestObjects_LargeOutcome_ReplayedWhole(t *testing.T) {
	t.Parallel()
	s, b, g := openObjects(t, Options{})
	other := openAgain(t, s, &s.opt)
	for name, c := range map[string]struct {
		body    []byte
		objects int
	}{
		"900 KB that do not compress":   {noise(900_000), 1},
		"33 KB that do not compress":    {noise(33_000), 1},
		"31 KB that do not compress":    {noise(31_000), 0},
		"1 MB that compresses to 10 KB": {bytes.Repeat([]byte("semel "), 170_000), 0},
	} {
		before, ran := len(b.made()), 0
		for range 2 {
			if got, err := runLarge(t, g, name, c.body, &ran); err != nil || !bytes.Equal(got, c.body) {
				t.Errorf("%s: %d bytes, error %v; want %d", name, len(got), err, len(c.body))
			}
		}
		if n := len(b.made()) - before; n != c.objects || ran != 1 {
			t.Errorf("%s: %d objects and %d runs, want %d and 1", name, n, ran, c.objects)
		}
		f, err := other.Get(t.Context(), store.Key{Operation: "op", Tenant: "t", Value: name})
		if o := f.Record.Outcome; err != nil || o.Code != 201 || o.Codec != "raw" || len(o.Header) != 1 || !bytes.Equal(o.Body, c.body) {
			t.Errorf("%s: another process reads code %d, codec %q, %d headers and %d bytes, error %v", name, o.Code, o.Codec, len(o.Header), len(o.Body), err)
		}
	}
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil || f.Record.Outcome.Gone {
			t.Errorf("the list has %q without its outcome, error %v", f.Record.Key.Value, err)
		}
	}
}

// A record never refers to an object that is still to be written.
func TestObjects_Settle_ObjectIsWrittenBeforeRecord(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	r := claim(t, s, "k")
	var states []store.State
	b.put = func(context.Context) { states = append(states, get(t, s, "k").State) }
	end := completion(string(noise(50_000)))
	for range 2 { // the second is the same settlement sent again
		if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
			t.Fatal(err)
		}
	}
	if len(states) != 2 || states[0] != store.Processing || states[1] != store.Completed {
		t.Errorf("the record was %v when its object was written, want processing", states)
	}
	if names := b.made(); names[0] != names[1] {
		t.Errorf("the same settlement has two objects: %v", names)
	}
}

// Another settlement of the same lease does not reach the object of the first one.
func TestObjects_OtherSettlementAfterwards_OutcomeStays(t *testing.T) {
	t.Parallel()
	s, _, _ := openObjects(t, Options{})
	r, end := claim(t, s, "k"), completion(string(noise(50_000)))
	if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
		t.Fatal(err)
	}
	tombstone := completion("")
	tombstone.Outcome = store.Outcome{Code: end.Outcome.Code, Codec: end.Outcome.Codec, Gone: true}
	for _, other := range []store.Settlement{completion(string(noise(50_000))), tombstone} {
		if err := s.Settle(t.Context(), r.Lease(), other); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("another settlement: %v, want ErrLeaseLost", err)
		}
	}
	if o := get(t, s, "k").Outcome; !o.Equal(end.Outcome) {
		t.Errorf("the outcome has %d bytes, gone: %v; want the first one", len(o.Body), o.Gone)
	}
}

// A worker without the lease leaves an object that no record names, and S3 expires it.
// The expiry of an object never concerns a later run, also if that had the same outcome.
func TestObjects_EarlierRunsObjectExpires_LaterOneStays(t *testing.T) {
	t.Parallel()
	now := newStandingClock()
	s, b, _ := openObjects(t, Options{now: now.read, noSkew: true})
	end := completion(string(noise(50_000)))
	zombie, owner := takenOver(t, s, now)
	if err := s.Settle(t.Context(), zombie.Lease(), end); !errors.Is(err, store.ErrLeaseLost) {
		t.Fatalf("settle without the lease: %v, want ErrLeaseLost", err)
	}
	orphans := b.made()
	if len(orphans) != 1 {
		t.Fatalf("the worker without the lease has made the objects %q, want one", orphans)
	}
	if err := s.Settle(t.Context(), owner.Lease(), end); err != nil {
		t.Fatal(err)
	}
	for _, name := range orphans {
		if _, err := b.send(t.Context(), http.MethodDelete, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if o := get(t, s, "k").Outcome; !o.Equal(end.Outcome) {
		t.Errorf("without the first run's object the outcome has %d bytes, gone: %v; want %d", len(o.Body), o.Gone, len(end.Outcome.Body))
	}
}

// An outcome that cannot be read back is no reason to run again.
func TestObjects_MissingOrDamaged_DoneAndNotKept(t *testing.T) {
	t.Parallel()
	s, b, g := openObjects(t, Options{})
	for name, damage := range map[string]struct {
		method string
		body   []byte
	}{
		"missing":                {http.MethodDelete, nil},
		"other bytes":            {http.MethodPut, noise(50_000)},
		"empty":                  {http.MethodPut, nil},
		"outcome of another key": {http.MethodPut, []byte("\x00" + string(store.EncodeStep(&store.Step{Outcome: store.Outcome{Body: []byte("not mine")}})))},
	} {
		ran := 0
		if _, err := runLarge(t, g, name, noise(50_000), &ran); err != nil {
			t.Fatal(err)
		}
		made := b.made()
		if _, err := b.send(t.Context(), damage.method, made[len(made)-1], damage.body); err != nil {
			t.Fatal(err)
		}
		if got, err := runLarge(t, g, name, nil, &ran); !errors.Is(err, semel.ErrNotKept) || ran != 1 {
			t.Errorf("%s: %d bytes, error %v after %d runs; want ErrNotKept after one", name, len(got), err, ran)
		}
		f, err := s.Get(t.Context(), store.Key{Operation: "op", Tenant: "t", Value: name})
		if o := f.Record.Outcome; err != nil || !o.Gone || o.Code != 201 || o.Codec != "raw" {
			t.Errorf("%s: the record has code %d, codec %q, gone %v, error %v; want 201, raw and gone", name, o.Code, o.Codec, o.Gone, err)
		}
	}
}

func TestObjects_Atomic_WrittenBeforeCommitOrRefused(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	a, body := atomicOf(t, s), noise(50_000)
	do := func() ([]byte, error) {
		return Do(t.Context(), a, testCall("k"), func(_ context.Context, _ *semel.Execution, tx *Tx) ([]byte, error) {
			return body, tx.Add(s.count("k"))
		})
	}
	b.fail(errors.New("503 Slow Down"))
	if _, err := do(); !errors.Is(err, semel.ErrUnavailable) || store.Affects(err) != store.ExtentPart {
		t.Errorf("without S3: error %v, want ErrUnavailable of a part", err)
	}
	if n := s.counted(t, "k"); n != 0 {
		t.Errorf("without S3 the effect happened %d times, want 0", n)
	}
	b.fail(nil)
	b.put = func(context.Context) {
		if n := s.counted(t, "k"); n != 0 {
			t.Error("the object was written after the transaction")
		}
	}
	for range 3 {
		if got, err := do(); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes, error %v; want %d", len(got), err, len(body))
		}
	}
	if n := s.counted(t, "k"); n != 1 {
		t.Errorf("the effect happened %d times, want 1", n)
	}
}

// semel inspect has no Objects; it reads the rest of the record.
func TestObjects_StoreHasNone_ReadsTombstone(t *testing.T) {
	t.Parallel()
	s, _, _ := openObjects(t, Options{})
	complete(t, s, "k", string(noise(50_000)))
	without := openAgain(t, s, &Options{IndexShards: 1})
	if o := get(t, without, "k").Outcome; !o.Gone || o.Code != 201 || o.Codec != "json" {
		t.Errorf("code %d, codec %q, gone %v; want 201, json and gone", o.Code, o.Codec, o.Gone)
	}
}
