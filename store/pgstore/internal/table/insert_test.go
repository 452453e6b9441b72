package table

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// Each row is in exactly one statement.
func TestInsertRows_ExceedOneStatement_AllInSome(t *testing.T) {
	body := make([]byte, maxStatement/3)
	pending := map[pgtype.UUID]*Pending{}
	for i := range byte(8) {
		pending[pgtype.UUID{Bytes: [16]byte{i}, Valid: true}] = &Pending{Columns: StateColumns{Body: body}}
	}
	seen := map[pgtype.UUID]int{}
	for _, rows := range InsertRows(pending) {
		size := 0
		for _, r := range rows {
			size += len(r.Columns.Body)
			seen[r.ID]++
		}
		if size > maxStatement || len(rows) == 0 {
			t.Errorf("%d rows of %d bytes in a statement", len(rows), size)
		}
	}
	for id := range pending {
		if seen[id] != 1 {
			t.Errorf("a row is written %d times", seen[id])
		}
	}
}
