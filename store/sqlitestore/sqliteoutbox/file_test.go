package sqliteoutbox_test

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/sqlitestore"
)

// A publisher whose file was removed or replaced must not go on with the old one, in which nobody
// writes messages any more: it would find none, and report nothing.
func TestFile_RemovedOrReplaced_IsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed there")
	}
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			box, db, st := open(t)
			if err := put(t, db, box, outbox.Message{Topic: "orders", ID: "old"}); err != nil {
				t.Fatal(err)
			}
			lanes, _, err := box.Lease(t.Context(), "one", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			taken, err := box.Take(t.Context(), lanes, nil, nil, 10)
			if err != nil || len(taken) != 1 {
				t.Fatalf("%d messages, error %v", len(taken), err)
			}
			if err := harm(st.Path()); err != nil {
				t.Fatal(err)
			}
			again, took := box.Take(t.Context(), lanes, nil, nil, 10)
			_, _, leased := box.Lease(t.Context(), "one", time.Minute)
			_, counted := box.Stats(t.Context())
			for method, err := range map[string]error{
				"Take": took, "Lease": leased, "Stats": counted,
				"Put":    put(t, db, box, outbox.Message{Topic: "orders", ID: "lost"}),
				"Settle": box.Settle(t.Context(), []outbox.Result{{Taken: &taken[0], Kind: outbox.Delivered}}),
			} {
				if !errors.Is(err, sqlitestore.ErrUnsafe) {
					t.Errorf("%s: %v, want ErrUnsafe", method, err)
				}
			}
			if len(again) != 0 {
				t.Errorf("Take returned %d messages of the old file", len(again))
			}
		})
	}
}
