package sqliteoutbox

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/store/sqlitestore"
)

func TestListCall_EachQuery_SearchesByIndex(t *testing.T) {
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	box, err := New(st)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range callLists {
		err := box.read(t.Context(), "plan", func(tx *sql.Tx) error {
			var id, parent, unused int
			var plan string
			err := tx.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+noBody(l.text), "a", "b", 10).Scan(&id, &parent, &unused, &plan)
			if !strings.HasPrefix(plan, "SEARCH") || !strings.Contains(plan, "call_hash>? AND call_hash<?") {
				t.Errorf("%v messages: the plan is %q", l.state, plan)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
