package redisstore

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// encode is a record as the scripts put it together.
func encode(t testing.TB, p *store.Proposal, r *store.Record) string {
	t.Helper()
	b := appendHolder(nil, r.Owner, r.Fence)
	for _, at := range []time.Time{r.Created, r.Until, r.Expires, r.Updated} {
		b = binary.BigEndian.AppendUint64(b, uint64(store.Micros(at)))
	}
	b, err := appendRest(appendState(b, p.State, p.Attempt), p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func samples() []store.Proposal {
	plain := proposal("k")
	full := proposal("every\x00byte\xff")
	full.State, full.Policy, full.Error, full.Attempt = store.Completed, store.Park, "an error", 1<<40
	full.Outcome = store.Outcome{Code: -3, Codec: "json", Gone: true, Body: []byte("body\x00"), Header: []store.Header{{Name: "A", Value: ""}, {Name: "", Value: "\xff"}}}
	full.FormerOwners = []store.FormerOwner{{Owner: full.Owner, Holder: "\xff", Fence: 1 << 63, Attempt: 2, State: store.Processing, Next: store.Unknown, Ended: store.Time(9)}, {}}
	empty := store.Proposal{State: store.Failed}
	released := proposal("r")
	released.State = store.Released
	return []store.Proposal{plain, full, empty, released}
}

func TestDecode_EncodedRecord_ReturnsIt(t *testing.T) {
	for _, p := range samples() {
		want := p.Insert(time.Unix(1_700_000_000, 123_456_000), 7)
		want.FormerOwners = p.FormerOwners
		got, err := decode(encode(t, &p, &want))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Outcome.Body) == 0 && len(want.Outcome.Body) == 0 {
			got.Outcome.Body, want.Outcome.Body = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// Whatever is cut off or changed, it is the same record, another that is
// readable, or corrupt; it never panics, and is never taken for absent.
func TestDecode_DamagedRecord_IsCorrupt(t *testing.T) {
	for _, p := range samples() {
		r := p.Insert(time.Unix(1_700_000_000, 0), 7)
		whole := encode(t, &p, &r)
		bodyLess := len(whole) - len(r.Outcome.Body)
		for n := range bodyLess {
			if _, err := decode(whole[:n]); !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("the first %d bytes of %d: %v, want ErrCorrupt", n, len(whole), err)
			}
		}
		if !r.State.Terminal() {
			if _, err := decode(whole + "x"); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("a byte more: %v, want ErrCorrupt", err)
			}
		}
		for _, damage := range []struct {
			at int
			to byte
		}{{0, store.Format + 1}, {0, 0}, {atState, 0}, {atState, 7}, {headLen, 2}, {headLen - 1, 255}, {headLen - 4, 255}, {headLen + 1, 255}} {
			b := []byte(whole)
			b[damage.at] = damage.to
			if _, err := decode(string(b)); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("byte %d is %d: %v, want ErrCorrupt", damage.at, damage.to, err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range samples() {
		r := p.Insert(time.Unix(1_700_000_000, 0), 7)
		f.Add([]byte(encode(f, &p, &r)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(string(b))
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%v, want ErrCorrupt", err)
			}
			return
		}
		p := store.Proposal{
			Key: r.Key, State: r.State, Policy: r.Policy, Owner: r.Owner, Holder: r.Holder, Fingerprint: r.Fingerprint,
			Attempt: r.Attempt, Outcome: r.Outcome, Error: r.LastError, FormerOwners: r.FormerOwners,
		}
		again, err := decode(encode(t, &p, &r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("read and written again: %+v, %v\nwant %+v", again, err, r)
		}
	})
}

func TestSettle_OutcomeTooLarge_ChangesNothing(t *testing.T) {
	s := openNew(t, nil)
	r := claim(t, s, "large")
	end := completion("")
	end.Outcome.Body = make([]byte, maxOutcome)
	if err := s.Settle(t.Context(), r.Lease(), end); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
	if got := get(t, s, "large"); got.State != store.Processing {
		t.Errorf("it is %v", got.State)
	}
}

func TestGet_ForeignValue_IsErrorNotAbsence(t *testing.T) {
	s := openNew(t, nil)
	ctx := t.Context()
	p := proposal("k")
	record, _ := s.name(p.Key.Digest())
	r := p.Insert(time.Unix(1_700_000_000, 0), 0)
	other := proposal("another")
	foreign := other.Insert(time.Unix(1_700_000_000, 0), 0)
	for name, v := range map[string]string{
		"empty": "", "text": "garbage", "newer": "\x02" + encode(t, &p, &r)[1:], "another key's": encode(t, &other, &foreign), "cut": encode(t, &p, &r)[:69],
	} {
		if err := s.client.Set(ctx, record, v, 0).Err(); err != nil {
			t.Fatal(err)
		}
		f, err := s.Claim(ctx, p)
		if err == nil || f.Won || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: Claim: won %v, error %v", name, f.Won, err)
		}
		if _, err := s.Get(ctx, p.Key); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: Get: %v", name, err)
		}
		if f, err := s.Swap(ctx, r.Seen(), p); name != "another key's" && (err == nil || f.Won || errors.Is(err, store.ErrNotFound)) {
			t.Errorf("%s: Swap: won %v, error %v", name, f.Won, err)
		}
		if err := s.Settle(ctx, r.Lease(), completion("x")); err == nil {
			t.Errorf("%s: Settle: nil", name)
		}
		if errs, err := s.Renew(ctx, []store.Lease{{Key: p.Key}}, time.Hour); err != nil || !errors.Is(errs[0], store.ErrLeaseLost) {
			t.Errorf("%s: Renew: %v, %v", name, errs, err)
		}
		for _, err := range s.List(ctx, store.Filter{}) {
			if name != "another key's" && !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: List: %v", name, err)
			}
		}
		if _, err := s.Sweep(ctx, "", 10); err != nil {
			t.Errorf("%s: Sweep: %v", name, err)
		}
		if got, err := s.client.Get(ctx, record).Result(); name != "another key's" && (err != nil || got != v) {
			t.Errorf("%s: it was changed: %v", name, err)
		}
	}
	s.client.Del(ctx, record)
	if err := s.client.HSet(ctx, record, "a", "b").Err(); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Claim(ctx, p); err == nil || f.Won {
		t.Errorf("a hash: Claim: won %v, error %v", f.Won, err)
	}
	if _, err := s.Get(ctx, p.Key); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a hash: Get: %v", err)
	}
	if _, err := s.Sweep(ctx, "", 10); err != nil {
		t.Errorf("a hash: Sweep: %v", err)
	}
}

// A record that cannot be read holds up nobody who shares its round trip.
func TestBatch_OneRecordBad_OthersSucceed(t *testing.T) {
	s := openNew(t, &Options{Flushers: 1})
	complete(t, s, "first", "x")
	bad := testKey("bad")
	record, _ := s.name(bad.Digest())
	if err := s.client.HSet(t.Context(), record, "a", "b").Err(); err != nil {
		t.Fatal(err)
	}
	gate := &gateHook{open: make(chan struct{})}
	s.client.AddHook(gate)
	results := make(chan error, 11)
	for i := range 11 {
		go func() {
			p := proposal("good " + string(rune('a'+i)))
			if i == 5 {
				p = proposal("bad")
			}
			f, err := s.Claim(t.Context(), p)
			if err == nil && !f.Won {
				t.Errorf("a new key is not won")
			}
			results <- err
		}()
	}
	waitFor(t, "they are queued", func() bool { return s.changes.queued() == 10 })
	close(gate.open)
	failed := 0
	for range 11 {
		if err := <-results; err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d of 11 failed, want the bad one", failed)
	}
}

// A sweep goes on behind records that cannot be read, though there are more of
// them than a step takes.
func TestSweep_UnreadableRecords_AreSkipped(t *testing.T) {
	s := openNew(t, nil)
	for i := range 6 {
		r := claim(t, s, itoa(i))
		end := completion("x")
		end.Keep = 0
		if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
			t.Fatal(err)
		}
		record, _ := s.name(r.Key.Digest())
		if i%2 == 0 { // a state that there is not, or that does not expire
			if err := s.client.SetRange(t.Context(), record, atState, []string{"\x00", "\x06", "\x07"}[i/2]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	deleted, from := 0, store.Cursor("")
	for step := 0; ; step++ {
		res, err := s.Sweep(t.Context(), from, 1)
		if err != nil || step > 20 {
			t.Fatalf("after %d steps %d are deleted, error %v", step, deleted, err)
		}
		deleted += res.Deleted
		if from = res.Next; from == "" {
			break
		}
	}
	if deleted != 3 {
		t.Errorf("%d are deleted, want 3", deleted)
	}
}

// A server that was restarted does not have the scripts: the batch that is sent
// with them whole is divided as any other if a record in it is refused.
func TestBatch_OneRecordBadAfterScriptFlush_OthersSucceed(t *testing.T) {
	s := openNew(t, nil)
	record, _ := s.name(testKey("bad").Digest())
	if err := s.client.HSet(t.Context(), record, "a", "b").Err(); err != nil {
		t.Fatal(err)
	}
	calls := make([]*call, 3)
	for i, key := range []string{"good", "bad", "fine"} {
		p := proposal(key)
		calls[i], _ = s.claimCall(&p)
	}
	if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.send(t.Context(), calls)
	for i, c := range calls {
		if (c.err != nil) != (i == 1) {
			t.Errorf("claim %d: %v", i, c.err)
		}
	}
}
