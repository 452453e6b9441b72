package pgstore

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A partition boundary is where the published pattern, a table for each day,
// grants a key twice. Here the partition follows from the key.
func TestPartitions_SameKeyConcurrently_GrantedOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Partitions: 8})
	both := []*Store{s, openOther(t, s)}
	const keys, callers = 100, 6
	var won [keys]atomic.Int32
	var all sync.WaitGroup
	for i := range keys {
		for c := range callers {
			all.Go(func() {
				f, err := both[c%2].Claim(t.Context(), proposal(itoa(i)))
				if err != nil {
					t.Error(err)
				} else if f.Won {
					won[i].Add(1)
				}
			})
		}
	}
	all.Wait()
	for i := range won {
		if n := won[i].Load(); n != 1 {
			t.Errorf("key %d was granted %d times", i, n)
		}
	}
	if n := ask[int](t, s.ownPool, "SELECT count(DISTINCT tableoid) FROM "+s.quoted()+".semel_record"); n != 8 {
		t.Errorf("%d keys are in %d partitions, want 8", keys, n)
	}
	// Nor can the key be written beside the store: each partition refuses the ids
	// of the others.
	at := pgx.Identifier{s.options.Schema, ask[string](t, s.ownPool, "SELECT c.relname::text FROM pg_class c JOIN "+s.quoted()+".semel_record r ON c.oid = r.tableoid WHERE r.id = $1", table.ID(testKey("0")))}.Sanitize()
	refused := 0
	for i := range 8 {
		to := pgx.Identifier{s.options.Schema, "semel_record_p00" + itoa(i)}.Sanitize()
		_, err := s.ownPool.Exec(t.Context(), "INSERT INTO "+to+" SELECT * FROM "+at+" WHERE id = $1", table.ID(testKey("0")))
		switch {
		case to == at && pgwire.Code(err) != pgwire.UniqueViolation, to != at && pgwire.Code(err) != "23514":
			t.Errorf("a second row in %s: %v", to, err)
		default:
			refused++
		}
	}
	if refused != 8 {
		t.Errorf("%d of 8 partitions refuse a second row", refused)
	}
}

// The control: with a table for each day the same key is granted on each side of
// midnight, and the server offers no unique index that would not.
func TestPartitions_ByDay_Refused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	q := func(sql string) string { return strings.ReplaceAll(sql, "S.", s.quoted()+".") }
	mustExec(t, s.ownPool, q(`CREATE TABLE S.published (id uuid NOT NULL, created bigint NOT NULL, UNIQUE (id, created)) PARTITION BY RANGE (created)`))
	mustExec(t, s.ownPool, q(`CREATE TABLE S.monday PARTITION OF S.published (UNIQUE (id)) FOR VALUES FROM (0) TO (100)`))
	mustExec(t, s.ownPool, q(`CREATE TABLE S.tuesday PARTITION OF S.published (UNIQUE (id)) FOR VALUES FROM (100) TO (200)`))
	granted := int64(0)
	for _, now := range []int{98, 99, 100, 101} {
		tag, err := s.ownPool.Exec(t.Context(), q(`INSERT INTO S.published VALUES ($1, $2) ON CONFLICT DO NOTHING`), table.ID(testKey("k")), now)
		if err != nil {
			t.Fatal(err)
		}
		granted += tag.RowsAffected()
	}
	if granted != 2 {
		t.Errorf("granted %d times, want 2", granted)
	}
	if _, err := s.ownPool.Exec(t.Context(), q(`CREATE UNIQUE INDEX ON S.published (id)`)); pgwire.Code(err) != "0A000" {
		t.Errorf("a unique index over the days: %v", err)
	}
	// Such a table is no place for records.
	mustExec(t, s.ownPool, q(`DROP TABLE S.semel_record CASCADE`))
	mustExec(t, s.ownPool, q(`CREATE TABLE S.semel_record (id uuid NOT NULL, created bigint NOT NULL, UNIQUE (id, created)) PARTITION BY RANGE (created)`))
	o := s.options
	if _, err := Open(t.Context(), pgtest.URL(t), &o); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "RANGE (created)") {
		t.Errorf("got %v, want ErrSchema", err)
	}
}

func TestPartitions_OtherNumber_ErrSchema(t *testing.T) {
	t.Parallel()
	for made, want := range map[int]string{0: "has 0 partitions", 4: "has 4 partitions"} {
		url := pgtest.URL(t)
		o := Options{Schema: newSchema(t, url), Partitions: made}
		s := openAt(t, url, &o)
		if n := len(s.parts); n != max(made, 1) {
			t.Errorf("made with %d, it has %d parts", made, n)
		}
		o.Partitions = 0
		if n := len(openAt(t, url, &o).parts); n != max(made, 1) {
			t.Errorf("made with %d, found %d parts", made, n)
		}
		o.Partitions = 5
		if _, err := Open(t.Context(), url, &o); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), want) {
			t.Errorf("made with %d, opened with 5: %v, want ErrSchema", made, err)
		}
		for _, from := range []store.Cursor{"4(0,1)", "-1(0,1)", "00(0,1)", "x(0,1)", "1(0,1) "} {
			if _, err := s.Sweep(t.Context(), from, 10); err == nil {
				t.Errorf("made with %d: the cursor %q was taken", made, from)
			}
		}
	}
}

func TestPartitionedInit_RunByHand_SameSchema(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 257} {
		if _, err := PartitionedInit(n); err == nil {
			t.Errorf("%d partitions were made", n)
		}
	}
	script, err := PartitionedInit(4)
	if err != nil {
		t.Fatal(err)
	}
	url := database(t, "semel_partitions_by_hand")
	db := pool(t, url)
	mustExec(t, db, script)
	names, err := fs.Glob(Migrations(), "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[1:] {
		runScript(t, db, name)
	}
	byHand := dump(t, db, "semel")
	const settings = "fillfactor=80,autovacuum_vacuum_scale_factor=0.02"
	tables, set := 0, 0
	for _, is := range byHand {
		if strings.HasPrefix(is, "semel_record_p") && strings.Contains(is, " r ") {
			tables++
			if strings.Contains(is, settings) {
				set++
			}
		}
	}
	if tables != 4 || set != 4 {
		t.Errorf("%d partitions, of which %d have the settings", tables, set)
	}
	complete(t, openAt(t, url, &Options{NoMigrate: true}), "k", "result")
	made := openNew(t, &Options{Partitions: 4})
	if got := dump(t, made.ownPool, made.options.Schema); !slices.Equal(got, byHand) {
		t.Errorf("Open made\n%q\nby hand it is\n%q", got, byHand)
	}
	slices.Reverse(names)
	for _, name := range names {
		runScript(t, db, strings.Replace(name, ".up.", ".down.", 1))
	}
	if rest := dump(t, db, "semel"); len(rest) != 0 {
		t.Errorf("the down scripts leave\n%q", rest)
	}
}

// A statement reads the partition of its key, and no other: as many look-ups
// as in one table.
func TestPartitions_Statement_ReadsOne(t *testing.T) {
	lookups := func(partitions int) int {
		s := openNew(t, &Options{Connections: 1, Flushers: 1, Partitions: partitions})
		noVacuum(t, s)
		for round := range 12 { // the plans are kept by now
			var ps []*store.Proposal
			for i := range 32 {
				p := proposal(itoa(round*100 + i))
				ps = append(ps, &p)
			}
			var settles []*settleItem
			var held []store.Lease
			for _, it := range claimBatch(s, ps...) {
				if it.Err != nil || !it.Res.Won {
					t.Fatalf("claim: won %v, error %v", it.Res.Won, it.Err)
				}
				l, c := it.Res.Record.Lease(), completion("result")
				r, _ := newSettleRequest(&l, &c)
				settles, held = append(settles, &settleItem{Req: r}), append(held, l)
			}
			if _, err := s.Renew(t.Context(), held, time.Minute); err != nil {
				t.Fatal(err)
			}
			s.flushSettles(t.Context(), settles)
			r := complete(t, s, "alone "+itoa(round), "result")
			if f, err := s.Swap(t.Context(), r.Seen(), proposal("alone "+itoa(round))); err != nil || !f.Won {
				t.Fatalf("swap: won %v, error %v", f.Won, err)
			}
		}
		mustExec(t, s.renewalPool, "SELECT pg_stat_force_next_flush()")
		mustExec(t, s.ownPool, "SELECT pg_stat_force_next_flush()")
		return ask[int](t, s.ownPool, "SELECT sum(idx_scan)::int FROM pg_stat_user_tables WHERE schemaname = $1 AND relname LIKE 'semel\\_record%'", s.options.Schema)
	}
	one, eight := lookups(0), lookups(8)
	if one < 12*33 || eight > one+one/10 {
		t.Errorf("%d look-ups in 8 partitions, %d in one table", eight, one)
	}
	t.Logf("%d look-ups in 8 partitions, %d in one table", eight, one)
}
