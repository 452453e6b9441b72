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

func TestAlikeRowsAreInsertedAsAllOthers(t *testing.T) {
	s := openNew(t, &Options{clock: "1700000000000000"})
	rows := make([]heldRow, 3)
	for i := range rows {
		p := proposal(string(rune('a' + i)))
		p.Fingerprint = store.Fingerprint{Alg: "bytes/sha256", KeyID: "7", Sum: "sum of " + p.Key.Value}
		is := &pending{p: p, r: p.Insert(store.Time(1699999999000000), 5)}
		if err := is.settle(&store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		rows[i] = heldRow{table.ID(p.Key), is}
	}
	if !areAlike(rows) {
		t.Fatal("the rows are not alike")
	}
	written := func(sql string, args []any) []string {
		mustExec(t, s.app, sql, args...)
		res, err := s.app.Query(t.Context(), "DELETE FROM "+pgx.Identifier{s.opt.Schema, table.Name}.Sanitize()+" r RETURNING r::text")
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
		"state": func(is *pending) { is.p.State = store.Failed }, "attempt": func(is *pending) { is.p.Attempt = 2 },
		"body": func(is *pending) { is.end.Body = []byte("x") }, "codec": func(is *pending) { is.end.Codec = []byte("x") },
		"header": func(is *pending) { is.end.Header = []byte("x") }, "gone": func(is *pending) { is.end.Gone = true },
		"code": func(is *pending) { is.end.Code = 1 }, "until": func(is *pending) { is.end.Until.Valid = true },
		"expires": func(is *pending) { is.end.Expires.Int64++ }, "policy": func(is *pending) { is.p.Policy = store.Park },
		"operation": func(is *pending) { is.p.Key.Operation = "x" }, "tenant": func(is *pending) { is.p.Key.Tenant = "x" },
		"holder": func(is *pending) { is.p.Holder = "x" }, "error": func(is *pending) { is.p.Error = "x" },
		"alg": func(is *pending) { is.p.Fingerprint.Alg = "x" }, "key id": func(is *pending) { is.p.Fingerprint.KeyID = "x" },
		"created": func(is *pending) { is.r.Created = is.r.Created.Add(1000) }, "fence": func(is *pending) { is.r.Fence++ },
	} {
		other := *rows[2].pending
		change(&other)
		if areAlike([]heldRow{rows[0], rows[1], {rows[2].id, &other}}) {
			t.Errorf("rows whose %s differs are alike", name)
		}
	}
}

// What is too much for a statement goes in several, and each row in one of them.
func TestRowsOfManyStatementsAreAllWritten(t *testing.T) {
	body := make([]byte, maxStatement/3)
	x := &storeTx{pending: map[pgtype.UUID]*pending{}}
	for i := range 8 {
		x.pending[table.ID(testKey(itoa(i)))] = &pending{end: table.StateColumns{Body: body}}
	}
	seen := map[pgtype.UUID]int{}
	for _, rows := range x.held() {
		size := 0
		for _, r := range rows {
			size += len(r.end.Body)
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
