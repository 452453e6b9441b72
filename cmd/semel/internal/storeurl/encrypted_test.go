package storeurl_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

func TestEncrypted_Store_KeepsWhatItCan(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte("a "+strings.Repeat("a", 42)+"A=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))
	plain := parse(t, "sqlite:"+filepath.Join(dir, "a.db"))
	k := store.Key{Operation: "op", Tenant: "ann", Value: "k"}
	use := func(u storeurl.URL, fn func(h storeurl.Handle)) {
		t.Helper()
		h, err := u.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fn(h)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := h.Get(t.Context(), k); err == nil {
			t.Error("the store is not closed")
		}
	}
	use(plain, func(h storeurl.Handle) {
		p := store.Proposal{Key: k, State: store.Completed, Owner: store.Owner{1}, Outcome: store.Outcome{Code: 200, Body: []byte("clear")}}
		if _, err := h.Claim(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	})
	for _, require := range []bool{false, true} {
		u, err := plain.Encrypted(keys, "--encryption-keys", require, log)
		if err != nil {
			t.Fatal(err)
		}
		use(u, func(h storeurl.Handle) {
			f, err := h.Get(t.Context(), k)
			if require != errors.Is(err, store.ErrCorrupt) || !require && string(f.Record.Outcome.Body) != "clear" {
				t.Errorf("require %v: %q, %v", require, f.Record.Outcome.Body, err)
			}
			if _, ok := store.As[store.Lister](h); !ok {
				t.Error("it cannot list")
			}
			box, err := storeurl.OutboxOf(h, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
			if _, err := semel.New(h, nil); err != nil {
				t.Error(err)
			}
		})
	}
	_, err := plain.Encrypted(filepath.Join(dir, "none"), "--encryption-keys", false, log)
	if !input.Is(err) || !strings.HasPrefix(err.Error(), "--encryption-keys: ") {
		t.Errorf("no file: %v", err)
	}
}

func TestEncrypted_FileWithoutKey_OldKeysComeFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := parse(t, "memory:").Encrypted(path, "--encryption-keys", false, slog.New(slog.DiscardHandler))
	want := `--encryption-keys: "` + path + `": has no key; if the store has encrypted records, copy the file of the processes that wrote them; only for a store without them, append a line with: echo "$(date +%F-%H%M%S) $(openssl rand -base64 32)" >> ` + path
	if !input.Is(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// The log names the keys that a changed file has no more.
func TestEncrypted_KeyLeavesFile_Warning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys")
		write := func(ids ...string) {
			var lines strings.Builder
			for _, id := range ids {
				lines.WriteString(id + " " + strings.Repeat("a", 42) + "A=\n")
			}
			if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("a")
		var log bytes.Buffer
		u, err := parse(t, "memory:").Encrypted(path, "--encryption-keys", false, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		use := func() string {
			log.Reset()
			time.Sleep(time.Minute)
			u.LogEncryption(t.Context(), slog.New(slog.DiscardHandler))
			return log.String()
		}
		write("bb", "a")
		if got := use(); !strings.Contains(got, "encrypts=bb") || strings.Contains(got, "WARN") {
			t.Errorf("a key more: %s", got)
		}
		write("bb")
		if got := use(); !strings.Contains(got, "level=WARN msg=\"encryption keys have left the file") || !strings.Contains(got, "dropped=a file="+path) {
			t.Errorf("a key less: %s", got)
		}
	})
}
