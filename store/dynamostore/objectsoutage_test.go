package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/moved"
)

// While S3 does not answer, a replay is an error, whatever the error says of itself.
func TestObjects_NoAnswerToReplay_ErrorThenOutcome(t *testing.T) {
	t.Parallel()
	s, b, g := openObjects(t, Options{})
	body, ran := noise(50_000), 0
	if _, err := runLarge(t, g, "k", body, &ran); err != nil {
		t.Fatal(err)
	}
	k := store.Key{Operation: "op", Tenant: "t", Value: "k"}
	for _, fault := range []error{errors.New("503 Slow Down"), store.ErrNotFound, store.ErrLeaseLost, store.ErrTooLarge} {
		b.fail(fault)
		_, err := s.Get(t.Context(), k)
		if err == nil || errors.Is(err, store.ErrNotFound) || store.Affects(err) != store.ExtentPart || !strings.Contains(err.Error(), fault.Error()) {
			t.Errorf("Get during %q: error %v, extent %v; want an outage of a part", fault, err, store.Affects(err))
		}
		if _, err := runLarge(t, g, "k", nil, &ran); !errors.Is(err, semel.ErrUnavailable) || ran != 1 {
			t.Errorf("a duplicate during %q: error %v after %d runs, want ErrUnavailable after one", fault, err, ran)
		}
	}
	b.fail(nil)
	if got, err := runLarge(t, g, "k", nil, &ran); err != nil || !bytes.Equal(got, body) || ran != 1 {
		t.Errorf("a duplicate afterwards: %d bytes, error %v after %d runs; want %d after one", len(got), err, ran, len(body))
	}
}

// The table has shown a record whose object cannot be read, so this is no outage: the
// handler does not run without a record. S3 answers 403 for an object that has expired if
// the program lacks s3:ListBucket.
func TestObjects_NoAnswerToUnprotectedDuplicate_DoesNotRun(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	g, err := semel.New(s, &semel.Options{UnprotectedOnOutage: true})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	if _, err := runLarge(t, g, "k", noise(50_000), &ran); err != nil {
		t.Fatal(err)
	}
	b.fail(errors.New("403 AccessDenied"))
	if _, err := runLarge(t, g, "k", nil, &ran); !errors.Is(err, semel.ErrUnavailable) || ran != 1 {
		t.Errorf("a duplicate: error %v after %d runs, want ErrUnavailable after one", err, ran)
	}
}

func TestObjects_NoAnswer_ErrorShowsRecordWithoutOutcome(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	done := complete(t, s, "k", string(noise(50_000)))
	b.fail(errors.New("503 Slow Down"))
	stale := done.Seen()
	stale.Fence--
	for name, ask := range map[string]func() (store.Found, error){
		"Claim": func() (store.Found, error) { return s.Claim(t.Context(), proposal("k")) },
		"Get":   func() (store.Found, error) { return s.Get(t.Context(), done.Key) },
		"Swap":  func() (store.Found, error) { return s.Swap(t.Context(), stale, proposal("k")) },
		"Receive": func() (store.Found, error) {
			return s.Receive(t.Context(), store.Record{Key: done.Key, State: store.Unknown, Owner: newOwner(), Created: done.Created, Updated: done.Created}, nil)
		},
	} {
		f, err := ask()
		if r := f.Record; err == nil || f.Won || r.Lease() != done.Lease() || r.State != store.Completed || !r.Outcome.Equal(store.Outcome{}) {
			t.Errorf("%s: won %v, a %v record of %q with fence %d and the code %d, error %v; want the record without its outcome, and an error", name, f.Won, r.State, r.Key.Value, r.Fence, r.Outcome.Code, err)
		}
	}
}

// A list whose reader goes on after the error would ask a bucket that is down for the object
// of each record. Records that are not selected need no object.
func TestList_ObjectsFail_EndsWithError(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	for _, value := range []string{"1", "2", "3"} {
		complete(t, s, value, string(noise(50_000)))
	}
	down := errors.New("503 Slow Down")
	b.fail(down)
	list := func(f store.Filter) (answers int, last error) {
		for _, err := range s.List(t.Context(), f) {
			answers, last = answers+1, err
		}
		return answers, last
	}
	if n, err := list(store.Filter{}); n != 1 || err == nil || !strings.Contains(err.Error(), down.Error()) {
		t.Errorf("a list has %d answers, the last with error %v; want one, with the error of the bucket", n, err)
	}
	if n, err := list(store.Filter{Tenant: "another"}); n != 0 || err != nil {
		t.Errorf("a list of another tenant has %d answers, error %v; want none", n, err)
	}
}

// The effect has happened when S3 fails, so the record says that it is done.
func TestObjects_NoAnswerToSettlement_TombstoneAndNoSecondRun(t *testing.T) {
	t.Parallel()
	s, b, g := openObjects(t, Options{})
	b.fail(errors.New("503 Slow Down"))
	body, ran := noise(50_000), 0
	if got, err := runLarge(t, g, "k", body, &ran); err != nil || !bytes.Equal(got, body) {
		t.Errorf("the first caller got %d bytes, error %v", len(got), err)
	}
	b.fail(nil)
	if _, err := runLarge(t, g, "k", nil, &ran); !errors.Is(err, semel.ErrNotKept) || ran != 1 {
		t.Errorf("a duplicate: error %v after %d runs, want ErrNotKept after one", err, ran)
	}

	// An object that hangs leaves time for the tombstone.
	r := claim(t, s, "hangs")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	left := time.Hour
	b.put = func(ctx context.Context) {
		if end, ok := ctx.Deadline(); ok {
			left = time.Until(end)
		}
	}
	b.fail(context.DeadlineExceeded)
	if err := s.Settle(ctx, r.Lease(), completion(string(body))); !errors.Is(err, store.ErrTooLarge) || left > time.Hour/2 {
		t.Errorf("error %v, and the object had %v of an hour; want ErrTooLarge, and half of it at most", err, left)
	}
}

// The reply to a settlement is lost, and S3 fails when it is sent again. A tombstone would be
// refused, and the caller would be told that it has lost its lease.
func TestObjects_NoAnswerToSettlementSentAgain_IsSettled(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	r, end := claim(t, s, "k"), completion(string(noise(50_000)))
	if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
		t.Fatal(err)
	}
	b.fail(errors.New("503 Slow Down"))
	if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
		t.Errorf("the settlement sent again: %v", err)
	}
	other, code, state := r.Lease(), completion(string(noise(50_000))), completion(string(noise(50_000)))
	other.Owner[0]++
	code.Outcome.Code = 202
	state.State = store.Failed
	for name, c := range map[string]struct {
		lease store.Lease
		end   store.Settlement
	}{"of another owner": {other, end}, "with another code": {r.Lease(), code}, "with another state": {r.Lease(), state}} {
		if err := s.Settle(t.Context(), c.lease, c.end); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("a settlement %s: %v, want ErrTooLarge", name, err)
		}
	}
	b.fail(nil)
	if o := get(t, s, "k").Outcome; !o.Equal(end.Outcome) {
		t.Errorf("the outcome has %d bytes, gone: %v; want the first one", len(o.Body), o.Gone)
	}
}

// lossyOnce is a store that loses the reply to the first settlement.
type lossyOnce struct {
	store.Store
	lose        func()
	settlements int
}

func (l *lossyOnce) Unwrap() store.Store { return l.Store }

func (l *lossyOnce) Settle(ctx context.Context, lease store.Lease, s store.Settlement) error {
	err := l.Store.Settle(ctx, lease, s)
	if l.settlements++; l.settlements == 1 && err == nil {
		l.lose()
		return errors.New("the reply was lost")
	}
	return err
}

// An encrypted settlement that is sent again has another ciphertext.
func TestObjects_SettlementSentAgainDuringOutage_CallerGetsOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*encrypted.Cipher{"plain": nil, "encrypted": {Keys: oneKey{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b, _ := openObjects(t, Options{})
			st := &lossyOnce{Store: s, lose: func() { b.fail(errors.New("503 Slow Down")) }}
			g, err := semel.New(st, &semel.Options{Encryption: c, StoreTimeout: time.Minute, SettleTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			ran, body := 0, noise(50_000)
			if _, err := runLarge(t, g, "k", body, &ran); err != nil || st.settlements != 2 {
				t.Errorf("the outcome is stored, and the caller gets %v after %d settlements, want 2", err, st.settlements)
			}
			b.fail(nil)
			if got, err := runLarge(t, g, "k", nil, &ran); err != nil || ran != 1 || !bytes.Equal(got, body) {
				t.Errorf("a duplicate gets %d bytes, %v after %d runs; want %d after one", len(got), err, ran, len(body))
			}
		})
	}
}

// The old store still has the outcome, so an outage of S3 does not make a tombstone of it.
func TestObjects_NoAnswerToCopy_NothingStoredThenWhole(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	from := memstore.New(nil)
	want := complete(t, from, "k", string(noise(50_000)))
	b.fail(errors.New("503 Slow Down"))
	if stats, err := moved.Copy(t.Context(), s, from, nil); err == nil || errors.Is(err, store.ErrTooLarge) || store.Affects(err) != store.ExtentPart || stats.Copied != 0 {
		t.Errorf("a copy during the outage: %+v, error %v; want an outage of a part", stats, err)
	}
	if _, err := s.Get(t.Context(), want.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the outage the store has a record, error %v", err)
	}
	b.fail(nil)
	if stats, err := moved.Copy(t.Context(), s, from, nil); err != nil || stats.Copied != 1 || stats.Tombstones != 0 {
		t.Errorf("a copy afterwards: %+v, error %v", stats, err)
	}
	if o := get(t, s, "k").Outcome; !o.Equal(want.Outcome) {
		t.Errorf("the outcome has %d bytes, gone: %v; want %d", len(o.Body), o.Gone, len(want.Outcome.Body))
	}
}
