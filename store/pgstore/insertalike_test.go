package pgstore

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

func TestInsertAlike_SameRowsAsInsertMany(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{clock: "1700000000000000"})
	rows := make([]table.InsertRow, 3)
	for i := range rows {
		p := proposal(string(rune('a' + i)))
		p.Fingerprint = store.Fingerprint{Alg: "bytes/sha256", KeyID: "7", Sum: "sum of " + p.Key.Value}
		is := &table.Pending{Proposal: p, Record: p.Insert(store.Time(1699999999000000), 5)}
		if err := is.Settle(&store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		rows[i] = table.InsertRow{ID: table.ID(p.Key), Pending: is}
	}
	if !table.AllAlike(rows) {
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
	if one, other := written(s.txSQL.InsertMany, table.InsertArrays(rows)), written(s.txSQL.InsertAlike, table.AlikeArrays(rows)); len(one) != 3 || !slices.Equal(one, other) {
		t.Errorf("rows are\n%q\nand\n%q", one, other)
	}
	for name, change := range map[string]func(is *table.Pending){
		"state": func(is *table.Pending) { is.Proposal.State = store.Failed }, "attempt": func(is *table.Pending) { is.Proposal.Attempt = 2 },
		"body": func(is *table.Pending) { is.Columns.Body = []byte("x") }, "codec": func(is *table.Pending) { is.Columns.Codec = []byte("x") },
		"header": func(is *table.Pending) { is.Columns.Header = []byte("x") }, "gone": func(is *table.Pending) { is.Columns.Gone = true },
		"code": func(is *table.Pending) { is.Columns.Code = 1 }, "until": func(is *table.Pending) { is.Columns.Until.Valid = true },
		"expires": func(is *table.Pending) { is.Columns.Expires.Int64++ }, "policy": func(is *table.Pending) { is.Proposal.Policy = store.Park },
		"operation": func(is *table.Pending) { is.Proposal.Key.Operation = "x" }, "tenant": func(is *table.Pending) { is.Proposal.Key.Tenant = "x" },
		"holder": func(is *table.Pending) { is.Proposal.Holder = "x" }, "error": func(is *table.Pending) { is.Proposal.Error = "x" },
		"alg": func(is *table.Pending) { is.Proposal.Fingerprint.Alg = "x" }, "key id": func(is *table.Pending) { is.Proposal.Fingerprint.KeyID = "x" },
		"created": func(is *table.Pending) { is.Record.Created = is.Record.Created.Add(1000) }, "fence": func(is *table.Pending) { is.Record.Fence++ },
	} {
		other := *rows[2].Pending
		change(&other)
		if table.AllAlike([]table.InsertRow{rows[0], rows[1], {ID: rows[2].ID, Pending: &other}}) {
			t.Errorf("rows whose %s differs are alike", name)
		}
	}
}
