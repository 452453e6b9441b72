package pgstore

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Each column that is not what this version writes makes the row unreadable,
// by name, and never absent.
func TestRow_InvalidColumn_ErrCorrupt(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for column, value := range map[string]string{
		"format": "2", "state": "7", "policy": "2", "fence": "-1", "owner": "", "header": `'[["a"]]'::bytea`, "key": `'other'::bytea`, "operation": "''::bytea", "former_owners": "'x'::bytea",
	} {
		if value == "" {
			continue
		}
		key := "bad " + column
		complete(t, s, key, "result")
		mustExec(t, s.ownPool, fmt.Sprintf("UPDATE %s.semel_record SET %s = %s WHERE id = $1", s.quoted(), column, value), table.ID(testKey(key)))
		_, err := s.Get(t.Context(), testKey(key))
		if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get with another %s: %v, want ErrCorrupt", column, err)
		}
		if f, err := s.Claim(t.Context(), proposal(key)); !errors.Is(err, store.ErrCorrupt) || f.Won {
			t.Errorf("Claim with another %s: won %v, error %v, want ErrCorrupt", column, f.Won, err)
		}
	}
	bad, good := 0, 0
	complete(t, s, "good", "result")
	for _, err := range s.List(t.Context(), store.Filter{}) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			bad++
		case err == nil:
			good++
		default:
			t.Error(err)
		}
	}
	if bad != 8 || good != 1 {
		t.Errorf("List gave %d unreadable and %d readable records, want 8 and 1", bad, good)
	}
	if res, err := s.Sweep(t.Context(), "", 100); err != nil || res.Deleted != 0 || len(res.Lapsed) != 0 {
		t.Errorf("Sweep: %+v, %v", res, err)
	}
}

// A row as it lies on the disk of those who have used the package before: its key
// has the same id, and each column the same meaning, in each version.
func TestRow_EarlierVersion_Found(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	mustExec(t, s.ownPool, `INSERT INTO `+s.quoted()+`.semel_record (id, operation, tenant, key, owner, state, policy, format, attempt, fence,
			created, updated, until, expires, holder, last_error, fingerprint_alg, fingerprint_key, fingerprint, code, gone, codec, header, body)
		VALUES ('7b6d5162-ac6f-f84b-fbae-8a5156e2e1f2', 'charge', 'acme', 'k', '00010203-0405-0607-0809-0a0b0c0d0e0f', 4, 1, 1, 3, 1700000000000007,
			1700000000000007, 1700000001000000, 0, 4000000000000000, 'host/7', 'a timeout', 'sha256', 'key 1', '\x00ff', 201, false, 'json', '[["A","1"]]', '{"n":1}')`)
	want := store.Record{
		Key: testKey("k"), State: store.Completed, Policy: store.Park, Fence: 1700000000000007, Holder: "host/7", Attempt: 3, LastError: "a timeout", Format: 1,
		Owner: store.Owner{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Fingerprint: store.Fingerprint{Alg: "sha256", KeyID: "key 1", Sum: "\x00\xff"},
		Outcome: store.Outcome{Code: 201, Codec: "json", Header: []store.Header{{Name: "A", Value: "1"}}, Body: []byte(`{"n":1}`)},
		Created: store.Time(1700000000000007), Updated: store.Time(1700000001000000), Completed: store.Time(1700000001000000), Expires: store.Time(4000000000000000),
	}
	if f, err := s.Claim(t.Context(), proposal("k")); err != nil || f.Won || !reflect.DeepEqual(f.Record, want) {
		t.Errorf("a duplicate finds (won %v, error %v)\n%+v\nwant\n%+v", f.Won, err, f.Record, want)
	}
}

// A caller that makes two keys with one id does not get another caller's answer. It
// does not look like an outage either, which would stop a consumer.
func TestRow_OtherKeySameID_ErrCorrupt(t *testing.T) {
	t.Parallel()
	w := table.Row{}
	k := testKey("k")
	w.ID, w.State.Int16, w.Format.Int16 = table.ID(k), 4, store.Format
	w.Operation, w.Tenant, w.Key = []byte(k.Operation), []byte(k.Tenant), []byte(k.Value)
	if _, err := w.Found(k, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Found(testKey("another with the same id"), 1); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestSettle_OutcomeTooLarge_ErrTooLarge(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	big := completion("")
	big.Outcome.Body = make([]byte, table.MaxOutcome+1)
	if err := s.Settle(t.Context(), r.Lease(), big); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	big.Outcome = store.Outcome{Code: 201, Gone: true}
	if err := s.Settle(t.Context(), r.Lease(), big); err != nil {
		t.Errorf("the tombstone: %v", err)
	}
}

func TestSettle_LargeOutcome_ReadBack(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	big := completion(strings.Repeat("0123456789abcdef", 1<<19)) // 8 MiB
	if err := s.Settle(t.Context(), r.Lease(), big); err != nil {
		t.Fatal(err)
	}
	if is := get(t, s, "k"); !is.Outcome.Equal(big.Outcome) {
		t.Errorf("%d bytes came back", len(is.Outcome.Body))
	}
}

func TestMicros_RoundsAsTimes(t *testing.T) {
	t.Parallel()
	now := store.Time(1_700_000_000_123_456)
	for _, d := range []time.Duration{0, 1, 999, 1000, 1001, -1, -999, -1000, -1001, time.Hour, math.MaxInt64} {
		if got, want := store.Micros(now)+table.Micros(d, true).Int64, store.Micros(now.Add(d)); got != want {
			t.Errorf("%d ns after: %d, want %d", d, got, want)
		}
	}
}

func TestHeaders_ReadBack(t *testing.T) {
	t.Parallel()
	for _, h := range [][]store.Header{nil, {{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}, {{}}, {{Name: "X", Value: "\x00\xff"}}, {{Name: "é", Value: `"\`}}} {
		b, err := store.EncodeHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.DecodeHeader(b); err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%q came back as %q, %v", h, got, err)
		}
	}
	for _, bad := range []string{"x", "[]", "{}", `[["a"]]`, `{"base64":[["a"]]}`, `[["a","b","c"]]`} {
		if h, err := store.DecodeHeader([]byte(bad)); err == nil {
			t.Errorf("%s was read as %q", bad, h)
		}
	}
}

// A row is read as a whole, whose columns somebody else may have put in order.
func TestRow_OtherColumnOrder_ReadBack(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"one more, of a later version": `ALTER TABLE semel_record ADD COLUMN later text NOT NULL DEFAULT 'x'`,
		"another order":                `ALTER TABLE semel_record RENAME COLUMN operation TO o; ALTER TABLE semel_record RENAME COLUMN tenant TO operation; ALTER TABLE semel_record RENAME COLUMN o TO tenant`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t, nil)
			tx, err := s.ownPool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, sql := range append([]string{"SET LOCAL search_path = " + s.quoted()}, strings.Split(change, ";")...) {
				mustExec(t, tx, sql)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, s.ownPool.Config().ConnString(), &Options{Schema: s.options.Schema})
			p := newShop(t, s, nil)
			was := complete(t, s, "k", "result")
			for _, claims := range [][]*claimItem{claimBatch(s, ptr(proposal("k"))), claimBatch(s, ptr(proposal("k")), ptr(proposal("new")))} {
				for _, it := range claims {
					if it.Req.Key.Value == "k" && (it.Err != nil || it.Res.Won || !reflect.DeepEqual(it.Res.Record, was)) {
						t.Errorf("a duplicate found %+v, %v\nwant %+v", it.Res.Record, it.Err, was)
					}
				}
			}
			for range 2 {
				if _, err := Do(t.Context(), p.a, call("atomic"), p.pay("atomic", nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// The clock is counted in floating point, and loses no microsecond by it.
func TestClock_Microseconds_Exact(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	now := strings.ReplaceAll(table.WallClock, "clock_timestamp()", "to_timestamp(s) + us * interval '1 microsecond'")
	wrong := ask[int](t, s.ownPool, `SELECT count(*)::int FROM generate_series(1700000000, 4200000000, 10000019) s, generate_series(0, 999999, 9973) us
		WHERE s * 1000000::bigint + us <> `+now)
	if wrong != 0 {
		t.Errorf("%d times are not exact", wrong)
	}
}

// Keys whose ids begin with the same bytes have different locks.
func TestLockOf_SameIDPrefix_DifferentLocks(t *testing.T) {
	t.Parallel()
	s := &Store{id: table.ID(testKey("the store"))}
	locks, numbers := map[[2]int32]bool{}, map[uint64]bool{}
	const n = 5000
	for i := range n {
		id := table.ID(store.Key{Operation: fmt.Sprint("op", i), Value: "order-7"})
		high, low := s.lockOf(id)
		locks[[2]int32{high, low}], numbers[table.KeyHash(id)] = true, true
	}
	if len(locks) != n || len(numbers) != n {
		t.Errorf("%d locks and %d numbers of %d keys", len(locks), len(numbers), n)
	}
}
