package encrypted_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store/encrypted"
)

// line is the line of a key in a file.
func line(id string) string { return id + " " + base64.StdEncoding.EncodeToString(keyOf(id)) + "\n" }

func write(t testing.TB, path, content string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "keys")
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadKeyFile_FirstKey_IsCurrent(t *testing.T) {
	f, err := encrypted.ReadKeyFile(write(t, "", "# rotated in November\n"+line("new")+"\n\t "+line("old")), nil)
	if err != nil {
		t.Fatal(err)
	}
	id, key, err := f.Current(t.Context())
	if err != nil || id != "new" || string(key) != string(keyOf("new")) {
		t.Errorf("current: %q %x, %v", id, key, err)
	}
	if key, err := f.Key(t.Context(), "old"); err != nil || string(key) != string(keyOf("old")) {
		t.Errorf("old: %x, %v", key, err)
	}
	if _, err := f.Key(t.Context(), "2026-10"); !errors.Is(err, encrypted.ErrUnknownKey) || !strings.Contains(err.Error(), `"2026-10"`) || !strings.Contains(err.Error(), "keys;") {
		t.Errorf("unknown: %v", err)
	}
}

func TestReadKeyFile_Unfit_ErrorNamesLineAndNoKey(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString(keyOf("s"))
	for content, want := range map[string]string{
		"":                                     `keys": has no key; if the store has encrypted records, copy the file of the processes that wrote them; only for a store without them, append a line with: echo "$(date +%F-%H%M%S) $(openssl rand -base64 32)" >> `,
		"# only a comment\n":                   "has no key",
		line("a") + secret + "\n":              `keys": line 2: must be two words, an ID and a key in base64; words in the line: 1`,
		secret + " a b\n":                      `keys": line 1: must be two words, an ID and a key in base64; words in the line: 3; if the store has records that were encrypted with this key, copy the line`,
		"a " + secret[:43] + "!\n":             `keys": line 1: the second word is not base64; if the store has records that were encrypted with this key, copy the line of the processes that wrote them; otherwise make a line with: echo `,
		"\na " + secret[:24] + "\n":            `keys": line 2: the key has 18 bytes; it must have 32`,
		line("a") + line("b") + line("a"):      `keys": line 3: the ID is that of line 1; delete one of the two lines, if no process uses them yet; otherwise the one that the other processes do not have`,
		strings.Repeat("a", 65) + " " + secret: `keys": line 1: the ID has 65 bytes`,
		strings.Repeat("# comment\n", 10_000):  "has more than 65536 bytes",
		secret + " 2026-11\n":                  `keys": line 1: the second word is not base64`,
	} {
		_, err := encrypted.ReadKeyFile(write(t, "", content), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret[:10]) {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
	if _, err := encrypted.ReadKeyFile(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("no file: %v", err)
	}
}

func TestKeyFile_Changed_IsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := write(t, "", line("old"))
		var warned []error
		f, err := encrypted.ReadKeyFile(path, func(err error) { warned = append(warned, err) })
		if err != nil {
			t.Fatal(err)
		}
		var reread []string
		f.OnReread(func(ids, dropped []string) {
			reread = append(reread, strings.Join(ids, ",")+" without "+strings.Join(dropped, ","))
		})
		current := func() string {
			id, _, err := f.Current(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		write(t, path, line("newer")+line("old"))
		if got := current(); got != "old" {
			t.Errorf("within a second it uses %q", got)
		}
		time.Sleep(time.Second)
		if got := current(); got != "newer" || len(warned) > 0 || !slices.Equal(reread, []string{"newer,old without "}) {
			t.Errorf("it uses %q, warned %v, read %v keys again", got, warned, reread)
		}
		write(t, path, "newest "+strings.Repeat("!", 20)+"\n")
		time.Sleep(time.Second)
		if got := current(); got != "newer" || len(warned) != 1 || !strings.Contains(warned[0].Error(), `keys": line 1: `) || !strings.Contains(warned[0].Error(), "stay in use") {
			t.Errorf("with a wrong file it uses %q, warned %v", got, warned)
		}
		time.Sleep(time.Second)
		if current(); len(warned) != 1 {
			t.Errorf("warned %d times of one content", len(warned))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := current(); got != "newer" || len(warned) != 2 || len(reread) != 1 || !strings.Contains(warned[1].Error(), "copy the file of the processes that wrote them") {
			t.Errorf("without a file it uses %q, warned %v", got, warned)
		}
		write(t, path, line("newest"))
		if _, err := f.Key(t.Context(), "newest"); err != nil || len(warned) != 2 || reread[len(reread)-1] != "newest without newer,old" {
			t.Errorf("an ID that is not known: %v, warned %v, read %v", err, warned, reread)
		}
	})
}

// The results of the first key could not be read under the second, whether the first is
// still in the file or has left it.
func TestKeyFile_IDWithAnotherKey_LastKeysStay(t *testing.T) {
	other := base64.StdEncoding.EncodeToString(keyOf("other"))
	for name, between := range map[string]string{"at once": "", "after its line was deleted": line("b")} {
		synctest.Test(t, func(t *testing.T) {
			path := write(t, "", line("a"))
			var warned []error
			f, err := encrypted.ReadKeyFile(path, func(err error) { warned = append(warned, err) })
			if err != nil {
				t.Fatal(err)
			}
			current := func() string {
				time.Sleep(time.Second)
				id, key, err := f.Current(t.Context())
				if err != nil || string(key) != string(keyOf(id)) {
					t.Errorf("%s: %s has the key %x, %v", name, id, key, err)
				}
				return id
			}
			last := "a"
			if between != "" {
				write(t, path, between)
				last = current()
			}
			write(t, path, line("new")+"a "+other+"\n")
			if got := current(); got != last || len(warned) != 1 || !strings.Contains(warned[0].Error(), `line 2: the ID "a" has another key`) || !strings.Contains(warned[0].Error(), "put the line of the old key back") ||
				!strings.Contains(warned[0].Error(), "stay in use") || strings.Contains(warned[0].Error(), other) {
				t.Fatalf("%s: it uses %q, warned %v", name, got, warned)
			}
			write(t, path, line("newest")+line("a"))
			if got := current(); got != "newest" || len(warned) != 1 {
				t.Errorf("%s: with the old key it uses %q, warned %v", name, got, warned)
			}
		})
	}
}

// A rotated file that must not be read for a while has the same time and size before and
// after the operator's chmod. A directory under the path stands for it, because the
// superuser may read every file.
func TestKeyFile_UnreadableThenMended_IsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := write(t, "", line("a"))
		var warned []error
		f, err := encrypted.ReadKeyFile(path, func(err error) { warned = append(warned, err) })
		if err != nil {
			t.Fatal(err)
		}
		current := func() string {
			time.Sleep(time.Second)
			id, _, err := f.Current(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		unreadable, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if id := current(); id != "a" || len(warned) != 1 {
				t.Fatalf("unreadable: %q encrypts, warned %v", id, warned)
			}
		}
		content := line("b") + line("a")
		content += strings.Repeat("\n", max(0, int(unreadable.Size())-len(content)))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, path, content)
		if err := os.Chtimes(path, unreadable.ModTime(), unreadable.ModTime()); err != nil {
			t.Fatal(err)
		}
		if id := current(); id != "b" || len(warned) != 1 {
			t.Errorf("mended: %q encrypts, warned %v", id, warned)
		}
	})
}

// A copy that keeps the time (cp -p) of a file whose lines have changed places, and a link
// that is swapped, look the same by time and size.
func TestKeyFile_LinesSwappedWithinOneTime_IsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := write(t, "", line("a")+line("b"))
		f, err := encrypted.ReadKeyFile(path, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		reread := 0
		f.OnReread(func([]string, []string) { reread++ })
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, line("b")+line("a"))
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Second)
			if id, _, err := f.Current(t.Context()); err != nil || id != "b" {
				t.Errorf("%q encrypts, %v", id, err)
			}
		}
		if reread != 1 {
			t.Errorf("one change was read %d times", reread)
		}
	})
}
