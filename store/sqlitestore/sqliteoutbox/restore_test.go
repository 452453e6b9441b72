package sqliteoutbox_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-go/semel/outbox"
)

// A copy is restored into the file while a message that it lacks is sent. The next message gets the
// position of that one, whose result must not end it.
func TestSettle_RestoredIntoTheFile_OtherMessagesAreKept(t *testing.T) {
	box, db, _ := open(t)
	lanes, _, err := box.Lease(t.Context(), "p", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := db.ExecContext(t.Context(), "VACUUM INTO ?", backup); err != nil {
		t.Fatal(err)
	}
	take := func() (taken []outbox.Taken, ids []string) {
		t.Helper()
		taken, err := box.Take(t.Context(), lanes, nil, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		for i := range taken {
			ids = append(ids, fmt.Sprint(taken[i].Position, " ", taken[i].ID))
		}
		return taken, ids
	}
	for i := range 3 {
		if err := put(t, db, box, outbox.Message{Topic: "orders", OrderKey: fmt.Sprint("lost", i), ID: "lost"}); err != nil {
			t.Fatal(err)
		}
	}
	lost, _ := take()
	restore(t, db, backup)
	for i := range 3 {
		if err := put(t, db, box, outbox.Message{Topic: "orders", OrderKey: fmt.Sprint("later", i), ID: fmt.Sprint("later", i)}); err != nil {
			t.Fatal(err)
		}
	}
	_, want := take()
	if !slices.Equal(want, []string{"1 later0", "2 later1", "3 later2"}) || len(lost) != 3 {
		t.Fatalf("%q wait, and %d are lost: this test shows nothing", want, len(lost))
	}
	for _, r := range []outbox.Result{
		{Taken: &lost[0], Kind: outbox.Delivered},
		{Taken: &lost[1], Kind: outbox.Delivered, Keep: true},
		{Taken: &lost[2], Kind: outbox.Failed, Delay: time.Hour},
	} {
		if err := box.Settle(t.Context(), []outbox.Result{r}); err != nil {
			t.Fatal(err)
		}
		if _, ids := take(); !slices.Equal(ids, want) {
			t.Errorf("after the result %v (keep %v) at position %d: %q wait, want %q", r.Kind, r.Keep, r.Position, ids, want)
		}
	}
	if s, err := box.Stats(t.Context()); err != nil || s.Waiting != 3 || s.Held != 0 {
		t.Errorf("%+v, %v; want 3 waiting messages, and none held", s, err)
	}
}

// restore writes the content of a backup into a database that is open, as the command .restore of
// SQLite's shell does.
func restore(t *testing.T, db *sql.DB, backup string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(c any) error {
		b, err := c.(interface {
			NewRestore(from string) (*sqlite.Backup, error)
		}).NewRestore(backup)
		if err != nil {
			return err
		}
		for more := true; more && err == nil; {
			more, err = b.Step(-1)
		}
		if err == nil {
			err = b.Finish()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
