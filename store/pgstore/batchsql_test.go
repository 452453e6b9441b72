package pgstore

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

func TestInsertAlike_SameRowsAsInsertMany(t *testing.T) {
	s := openNew(t, &Options{clock: "1700000000000000"})
	rows := make([]insertRow, 3)
	for i := range rows {
		p := proposal(string(rune('a' + i)))
		p.Fingerprint = store.Fingerprint{Alg: "bytes/sha256", KeyID: "7", Sum: "sum of " + p.Key.Value}
		is := &pending{proposal: p, record: p.Insert(store.Time(1699999999000000), 5)}
		if err := is.settle(&store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		rows[i] = insertRow{table.ID(p.Key), is}
	}
	if !allAlike(rows) {
		t.Fatal("the rows are not alike")
	}
	written := func(sql string, args []any) []string {
		mustExec(t, s.appPool, sql, args...)
		res, err := s.appPool.Query(t.Context(), "DELETE FROM "+pgx.Identifier{s.options.Schema, table.Name}.Sanitize()+" r RETURNING r::text")
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(res, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(texts)
		return texts
	}
	if one, other := written(s.txSQL.InsertMany, insertArrays(rows)), written(s.txSQL.InsertAlike, alikeArrays(rows)); len(one) != 3 || !slices.Equal(one, other) {
		t.Errorf("rows are\n%q\nand\n%q", one, other)
	}
	for name, change := range map[string]func(is *pending){
		"state": func(is *pending) { is.proposal.State = store.Failed }, "attempt": func(is *pending) { is.proposal.Attempt = 2 },
		"body": func(is *pending) { is.columns.Body = []byte("x") }, "codec": func(is *pending) { is.columns.Codec = []byte("x") },
		"header": func(is *pending) { is.columns.Header = []byte("x") }, "gone": func(is *pending) { is.columns.Gone = true },
		"code": func(is *pending) { is.columns.Code = 1 }, "until": func(is *pending) { is.columns.Until.Valid = true },
		"expires": func(is *pending) { is.columns.Expires.Int64++ }, "policy": func(is *pending) { is.proposal.Policy = store.Park },
		"operation": func(is *pending) { is.proposal.Key.Operation = "x" }, "tenant": func(is *pending) { is.proposal.Key.Tenant = "x" },
		"holder": func(is *pending) { is.proposal.Holder = "x" }, "error": func(is *pending) { is.proposal.Error = "x" },
		"alg": func(is *pending) { is.proposal.Fingerprint.Alg = "x" }, "key id": func(is *pending) { is.proposal.Fingerprint.KeyID = "x" },
		"created": func(is *pending) { is.record.Created = is.record.Created.Add(1000) }, "fence": func(is *pending) { is.record.Fence++ },
	} {
		other := *rows[2].pending
		change(&other)
		if allAlike([]insertRow{rows[0], rows[1], {rows[2].id, &other}}) {
			t.Errorf("rows whose %s differs are alike", name)
		}
	}
}

// Rows that do not fit in one statement go in several, each row in one of them.
func TestRunWhole_RowsExceedOneStatement_AllWritten(t *testing.T) {
	body := make([]byte, maxStatement/3)
	x := &storeTx{pending: map[pgtype.UUID]*pending{}}
	for i := range 8 {
		x.pending[table.ID(testKey(itoa(i)))] = &pending{columns: table.StateColumns{Body: body}}
	}
	seen := map[pgtype.UUID]int{}
	for _, rows := range x.insertRows() {
		size := 0
		for _, r := range rows {
			size += len(r.columns.Body)
			seen[r.id]++
		}
		if size > maxStatement || len(rows) == 0 {
			t.Errorf("%d rows of %d bytes in a statement", len(rows), size)
		}
	}
	for id := range x.pending {
		if seen[id] != 1 {
			t.Errorf("a row is written %d times", seen[id])
		}
	}
}
