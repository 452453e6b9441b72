package kafkapg

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume/driver"
)

// One partition of the records is detached. Messages whose records are in the others are
// handled. The rest wait, however often they are tried, and no attempt of theirs counts.
func TestKeyed_PartitionOfRecordsDetached_OnlyItsMessagesWait(t *testing.T) {
	t.Parallel()
	p := newShopIn(t, 4)
	m := p.keyed(t, 2)
	var names []string
	for i := range 24 {
		names = append(names, fmt.Sprint("m", i))
		p.errs[names[i]] = errors.New("the first attempt fails")
	}
	batch := named(names...)
	m.Handle(t.Context(), batch) // so that each has a record
	clear(p.errs)
	schema, _, _ := strings.Cut(p.effectTable, ".")
	rows, err := p.pool.Query(t.Context(), "SELECT convert_from(key, 'UTF8'), tableoid::regclass::text FROM "+schema+".semel_record")
	if err != nil {
		t.Fatal(err)
	}
	partitions := map[string]string{}
	var key, partition string
	if _, err := pgx.ForEachRow(rows, []any{&key, &partition}, func() error { partitions[key] = partition; return nil }); err != nil {
		t.Fatal(err)
	}
	gone, bound := partitions[names[0]], ""
	if err := p.pool.QueryRow(t.Context(), "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = $1::regclass", gone).Scan(&bound); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "ALTER TABLE "+schema+".semel_record DETACH PARTITION "+gone)
	for try := range 5 {
		for i, r := range m.Handle(t.Context(), batch) {
			want := driver.ReasonUnavailable
			switch {
			case partitions[names[i]] != gone && try == 0:
				want = driver.ReasonDone
			case partitions[names[i]] != gone:
				want = driver.ReasonDuplicate
			}
			if d := driver.Decide(r, driver.Policy{}); d.Reason != want {
				t.Errorf("try %d: %s in %s: %s, %v; want %s", try, names[i], partitions[names[i]], d.Reason, r.Err, want)
			}
		}
	}
	p.exec(t, "ALTER TABLE "+schema+".semel_record ATTACH PARTITION "+gone+" "+bound)
	for i, r := range m.Handle(t.Context(), batch) {
		want := driver.ReasonDuplicate
		if partitions[names[i]] == gone {
			want = driver.ReasonDone
		}
		if d := driver.Decide(r, driver.Policy{}); d.Reason != want {
			t.Errorf("with all partitions: %s: %s, %v; want %s", names[i], d.Reason, r.Err, want)
		}
	}
}
