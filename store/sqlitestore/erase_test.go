package sqlitestore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// What a sweep has deleted is not in any of the files, and the file gets smaller.
func TestSweep_ExpiredAnswers_ErasedAndSpaceGivenBack(t *testing.T) {
	now := time.Now()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	g, err := semel.New(st, &semel.Options{Retention: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	canary := []byte("canary-4711-of-a-customer")
	const n = 64
	for i := range n {
		_, err := g.Run(t.Context(), semel.Call{Operation: "pay", Tenant: "ann", Key: fmt.Sprint("canary-4711-key", i), Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{Code: 200, Body: bytes.Repeat(canary, 1+i*100)}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	found := func() (hits int, size int64) {
		t.Helper()
		for _, end := range []string{"", "-wal", "-shm"} {
			doc, err := os.ReadFile(path + end)
			if err != nil {
				t.Fatal(err)
			}
			hits, size = hits+bytes.Count(doc, []byte("canary-4711")), size+int64(len(doc))
		}
		return hits, size
	}
	hits, full := found()
	if hits == 0 {
		t.Fatal("the answers are not in the files, so the test would find nothing")
	}
	now = now.Add(time.Hour)
	deleted := 0
	for from := store.Cursor(""); ; {
		res, err := st.Sweep(t.Context(), from, 1000)
		if err != nil {
			t.Fatal(err)
		}
		deleted += res.Deleted
		if from = res.Next; from == "" {
			break
		}
	}
	if deleted != n {
		t.Fatalf("swept %d of %d", deleted, n)
	}
	if _, err := st.Sweep(t.Context(), "", 1000); err != nil { // it goes on where the first was held up
		t.Fatal(err)
	}
	if hits, size := found(); hits > 0 || size > full/4 {
		t.Errorf("the canary is there %d times; the files have %d bytes, and had %d", hits, size, full)
	}
}
