package sqlitestore

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// write keeps r as it is, whatever its state.
func write(s *Store, r store.Record) error {
	return s.writer.do(context.Background(), func(k *lockedTx) error {
		id := r.Key.ID()
		args, err := insertArgs(id[:], &r)
		if err != nil {
			return err
		}
		if _, err := k.db.exec(background, stInsert, args...); err != nil {
			return err
		}
		return k.replace(background, &r)
	})
}

// same compares records as those who replay them would.
func same(a, b store.Record) bool {
	if !a.Outcome.Equal(b.Outcome) {
		return false
	}
	a.Outcome, b.Outcome = store.Outcome{}, store.Outcome{}
	return reflect.DeepEqual(a, b)
}

func TestClaim_FenceTooLarge_IsRefused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	r.Fence = math.MaxInt64 + 1
	if err := write(s, r); err == nil || !strings.Contains(err.Error(), "the limit is 9223372036854775807") {
		t.Errorf("got %v", err)
	}
	if err := s.Settle(context.Background(), r.Lease(), completion("x")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("settling with such a fence: %v, want ErrLeaseLost", err)
	}
}

func TestSettle_OutcomeTooLarge_ChangesNothing(t *testing.T) {
	t.Parallel()
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

// FuzzRow writes a random record, reads it back equal, then damages a column:
// that is an unreadable record, or one with another value, but no panic and
// never an absence.
func FuzzRow(f *testing.F) {
	f.Add("op", "tenant", "key", uint8(3), false, uint64(1), "owner", "holder", "alg", "id", "sum", int32(1), int64(1), int64(2), "X", "v", "body", "json", true, "error", uint8(0), int64(9), "damage")
	f.Add("", "", "\x00\xff", uint8(5), true, uint64(1<<62), "", "", "", "", "\x00", int32(-1), int64(-1), int64(1<<60), "\xff", "", "", "", false, "\xff\x00", uint8(7), int64(-1), "[")
	s, err := Open(context.Background(), filepath.Join(f.TempDir(), "fuzz.db"), &Options{Relaxed: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	columns := []string{"state", "policy", "fence", "attempt", "until", "expires", "created", "updated", "completed", "format", "code", "gone",
		"owner", "id", "fingerprint", "body", "former_owners", "operation", "tenant", "key", "holder", "last_error", "codec", "header", "fingerprint_alg"}
	f.Fuzz(func(t *testing.T, op, tenant, key string, state uint8, park bool, fence uint64, owner, holder, alg, keyID, sum string,
		attempt int32, until, expires int64, name, value, body, codec string, gone bool, lastErr string, column uint8, number int64, text string,
	) {
		r := store.Record{
			Key: store.Key{Operation: op, Tenant: tenant, Value: key}, State: store.State(1 + state%6), Fence: max(1, fence&math.MaxInt64), Holder: holder,
			Fingerprint: store.Fingerprint{Alg: alg, KeyID: keyID, Sum: sum}, Attempt: int(attempt), LastError: lastErr, Format: store.Format,
			Until: store.Time(until), Expires: store.Time(expires), Created: store.Time(expires ^ until), Updated: store.Time(until + 1), Completed: store.Time(-until),
			Outcome:      store.Outcome{Code: int(attempt), Header: []store.Header{{Name: name, Value: value}}, Body: []byte(body), Codec: codec, Gone: gone},
			FormerOwners: []store.FormerOwner{{Holder: holder, Fence: fence, Attempt: int(attempt), State: store.State(state), Ended: store.Time(until)}},
		}
		copy(r.Owner[:], owner)
		if park {
			r.Policy = store.Park
		}
		t.Cleanup(func() {
			_ = s.writer.do(context.Background(), func(*lockedTx) error {
				_, err := s.writer.conn.ExecContext(background, "DELETE FROM semel_record; UPDATE semel_meta SET swept_fence = 0")
				return err // the sweep below raises the fence that the next record has to exceed
			})
		})
		if err := write(s, r); err != nil {
			t.Fatalf("write: %v", err)
		}
		fd, err := s.Get(context.Background(), r.Key)
		if err != nil || !same(fd.Record, r) {
			t.Fatalf("came back as\n%+v, error %v, was\n%+v", fd.Record, err, r)
		}
		i := int(column) % len(columns)
		damage := []any{number, []byte(text), text}[min(2, i/12+i/17)]
		err = s.writer.do(context.Background(), func(*lockedTx) error {
			_, err := s.writer.conn.ExecContext(background, "UPDATE semel_record SET "+columns[i]+" = ?", damage)
			return err
		})
		if err != nil {
			t.Fatalf("damage: %v", err)
		}
		for fd, err := range s.List(context.Background(), store.Filter{}) {
			if err != nil && !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("list of a damaged record: %v", err)
			}
			if err == nil && !fd.Record.State.Valid() {
				t.Errorf("list gave state %v", fd.Record.State)
			}
		}
		moved := columns[i] == "id" // then there is no such record
		if _, err := s.Get(context.Background(), r.Key); err != nil && !errors.Is(err, store.ErrCorrupt) && !moved {
			t.Errorf("a damaged record: %v, want ErrCorrupt or the record", err)
		}
		if _, err := s.Sweep(context.Background(), "", 10); err != nil {
			t.Errorf("sweep of a damaged record: %v", err)
		}
	})
}

func TestView_Record_IsReadable(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Now: newClock().Now})
	r := complete(t, s, "k", `{"ok":true}`)
	var state, policy, created, expires, owner, text string
	var until *string
	err := application(t, s, "").QueryRow(`SELECT state, policy, until, created, expires, owner, body_json FROM semel_readable WHERE key = 'k'`).
		Scan(&state, &policy, &until, &created, &expires, &owner, &text)
	if err != nil {
		t.Fatal(err)
	}
	const iso = "2006-01-02T15:04:05.000Z"
	if state != "completed" || policy != "retry" || until != nil || text != `{"ok":true}` || len(owner) != 32 ||
		created != r.Created.Format(iso) || expires != r.Created.Add(time.Hour).Format(iso) {
		t.Errorf("the view shows %q, %q, %v, %q, %q, %q, %q", state, policy, until, created, expires, owner, text)
	}
	for n := range 6 {
		mustExec(t, application(t, s, immediate), "UPDATE semel_record SET state = "+itoa(n+1))
		if err := application(t, s, "").QueryRow(`SELECT state FROM semel_readable`).Scan(&state); err != nil || state != store.State(n+1).String() {
			t.Errorf("state %d is shown as %q, error %v", n+1, state, err)
		}
	}
}

// Statements by key use the index, whatever the table holds, so that
// their plans stay good when it grows.
func TestStatements_ByKey_UseIndex(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for _, st := range []stmt{stSelect, stReplace, stSettle, stRenew} {
		args := make([]any, strings.Count(statements[st], "?"))
		var id, parent, unused int
		var plan string
		if err := s.reads.QueryRow("EXPLAIN QUERY PLAN "+statements[st], args...).Scan(&id, &parent, &unused, &plan); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(plan, "SEARCH semel_record USING INDEX") {
			t.Errorf("%s\nis carried out as %q", statements[st], plan)
		}
	}
}

func TestGet_RowOfAnotherKey_IsCorrupt(t *testing.T) {
	t.Parallel()
	k := testKey("k")
	id := k.ID()
	w := row{
		id: id[:], operation: k.Operation, tenant: k.Tenant, key: k.Value, owner: make([]byte, len(store.Owner{})),
		state: int64(store.Unknown), format: store.Format,
	}
	if r, err := w.recordOf(k); err != nil || r.Key != k {
		t.Fatalf("its own: %+v, %v", r, err)
	}
	if r, err := w.recordOf(testKey("another with the same id")); !errors.Is(err, store.ErrCorrupt) || r.Key != (store.Key{}) {
		t.Errorf("another's: %+v, %v; want ErrCorrupt", r, err)
	}
}
