package secrets_test

import (
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
)

const digits = "fe112233445566778899aabbccddeeff"

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead_SecretsInOrder(t *testing.T) {
	list, err := secrets.Read(file(t, "# rotated in November\nnew:"+digits+"\n\n  old:"+digits+"ff\n"), "--secret-file")
	if err != nil || len(list) != 2 || list[0].ID != "new" || list[1].ID != "old" || len(list[0].Key) != 16 || len(list[1].Key) != 17 {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestRead_UnkeyedFirst_ZeroSecret(t *testing.T) {
	list, err := secrets.Read(file(t, "# turned on in November\nunkeyed\nnew:"+digits+"\n"), "--secret-file")
	if err != nil || len(list) != 2 || list[0].ID != "" || list[0].Key != nil || list[1].ID != "new" {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestRead_InvalidLine_NumberedNotShown(t *testing.T) {
	for content, want := range map[string]string{
		"":                                     "has no secret; if the store has records that were hashed with a secret, copy the file of the processes that wrote them; only for a store without them, append a line id:hex with: echo ",
		"# nothing\n":                          "has no secret",
		"a\n":                                  "line 1 is not id:hex; if the store has records that were hashed with a secret, copy the line of the processes that wrote them; only for a store without them, make a line with: echo ",
		"unkeyed\n":                            "has no secret",
		"a:" + digits + "\nunkeyed\n":          "line 2: unkeyed can be the first line only",
		"unkeyed\nunkeyed\na:" + digits:        "line 2: unkeyed can be the first line only",
		"\na:xyz\n":                            "line 2 is not id:hex",
		":" + digits:                           "line 1: the id has 0 bytes; it must have 1 to 64; if the store has",
		"a:" + digits + "\n\na:" + digits:      "line 3: the id is that of line 1; delete one of the two lines, if no process uses them yet; otherwise the one that the other processes do not have. A new secret needs a new id, such as from: echo ",
		strings.Repeat("x", 65) + ":" + digits: "line 1: the id has 65 bytes; it must have 1 to 64; if the store has",
		"a:0011":                               "line 1: the secret has 2 bytes; at least 16 are needed; if the store has",
		strings.Repeat("#", 65<<10):            "which is the most",
	} {
		_, err := secrets.Read(file(t, content), "--secret-file")
		if err == nil || !input.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", content, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), digits) || strings.Contains(err.Error(), "xyz") || strings.Contains(err.Error(), `"0011`)) {
			t.Errorf("%.40q: the error shows a secret: %v", content, err)
		}
	}
}

// The suggested ID is another one when the command runs again in the same month.
func TestRead_SuggestedID_NamesTheSecond(t *testing.T) {
	if _, err := secrets.Read(file(t, ""), "--secret-file"); err == nil || !strings.Contains(err.Error(), `echo "$(date +%F-%H%M%S):$(openssl rand -hex 32)" >> `) {
		t.Errorf("got %v", err)
	}
}

func TestUsed_IDWithAnotherSecret_NothingAdded(t *testing.T) {
	used := secrets.Used{}
	one, two := []byte(strings.Repeat("1", 16)), []byte(strings.Repeat("2", 16))
	add := func(list ...semel.Secret) error { return used.Add(list, "live", "secret-file") }
	if err := add(semel.Secret{}, semel.Secret{ID: "a", Key: one}); err != nil {
		t.Fatal(err)
	}
	if err := add(semel.Secret{ID: "b", Key: two}); err != nil {
		t.Errorf("a file with another ID: %v", err)
	}
	err := add(semel.Secret{ID: "c", Key: two}, semel.Secret{ID: "a", Key: two})
	if !input.Is(err) || !strings.Contains(err.Error(), `secret-file: "live": the id "a" has another secret`) || !strings.Contains(err.Error(), "put the line of the old secret back, as the other processes have it, before this process starts again") || strings.Contains(err.Error(), string(two)) {
		t.Errorf("the ID of a secret that left the file: %v", err)
	}
	if err := add(semel.Secret{ID: "c", Key: one}, semel.Secret{ID: "a", Key: one}); err != nil {
		t.Errorf("after a refused file: %v", err)
	}
}

// The first 16 bytes of a secret are a secret, too. If a process used them, it would refuse
// the whole file afterwards, because one ID would have two secrets.
func TestReread_HalfWrittenLine_NotTaken(t *testing.T) {
	last := "s1:" + digits + "\n"
	whole := "s2:" + digits + digits + "\n" + last + "s3:" + digits + digits + "\n"
	path := file(t, last[:len(last)-1])
	inUse, err := secrets.Read(path, "secret-file")
	if err != nil {
		t.Fatal(err)
	}
	if _, changed, err := secrets.Reread(path, "secret-file", inUse); changed || err != nil {
		t.Errorf("the same secrets without a newline: %v, %v", changed, err)
	}
	for n := range len(whole) {
		if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		list, _, err := secrets.Reread(path, "secret-file", inUse)
		for _, s := range list {
			if s.ID != "s1" && len(s.Key) != 32 {
				t.Errorf("%d of %d bytes: the secret %s of %d bytes is taken, %v", n, len(whole), s.ID, len(s.Key), err)
			}
		}
	}
	_, _, err = secrets.Reread(file(t, whole[:len(whole)-1]), "secret-file", inUse)
	if !input.Is(err) || !strings.Contains(err.Error(), "the last line has no newline") || strings.Contains(err.Error(), digits) {
		t.Errorf("without the newline: %v", err)
	}
	if list, changed, err := secrets.Reread(file(t, whole), "secret-file", inUse); err != nil || !changed || len(list) != 3 || list[0].ID != "s2" {
		t.Errorf("the whole file: %v, %v, %v", list, changed, err)
	}
}

func TestRead_MissingFile_InputError(t *testing.T) {
	if _, err := secrets.Read(filepath.Join(t.TempDir(), "none"), "--secret-file"); !input.Is(err) {
		t.Errorf("got %v", err)
	}
}

func TestHashKeys_OneLine_IsTheSecret(t *testing.T) {
	for _, content := range []string{line64(32), line64(32) + "\n", " " + line64(48) + "\r\n"} {
		if secret, err := secrets.HashKeys(file(t, content), "--hash-keys-file"); err != nil || len(secret) < 32 || secret[0] != 'x' {
			t.Errorf("%q: got %q, %v", content, secret, err)
		}
	}
	if secret, err := secrets.HashKeys("", "--hash-keys-file"); err != nil || secret != nil {
		t.Errorf("no file: got %q, %v", secret, err)
	}
}

func TestHashKeys_UnfitFile_RefusedAndNotShown(t *testing.T) {
	for content, want := range map[string]string{
		"":                                       "has 0 bytes; at least 32 are needed; if the store has hashed records, copy the file of the processes that wrote them; only for a store without them, make it with: ",
		"\n":                                     "has 0 bytes; at least 32",
		line64(31):                               "has 31 bytes; at least 32",
		line64(32) + "\n" + line64(32) + "\n":    "must be one line of base64; if the store has hashed records, copy",
		line64(48)[:60] + "\n" + line64(48)[60:]: "must be one line of base64",
		"new:" + digits + digits:                 "must be one line of base64",
		strings.Repeat("x", 65<<10):              "which is the most",
	} {
		secret, err := secrets.HashKeys(file(t, content), "--hash-keys-file")
		if secret != nil || !input.Is(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), digits) || strings.Contains(err.Error(), "eHh4") {
			t.Errorf("%.40q: got %q, %v; want %s", content, secret, err, want)
		}
	}
	if _, err := secrets.HashKeys(filepath.Join(t.TempDir(), "none"), "--hash-keys-file"); !input.Is(err) {
		t.Errorf("no file: got %v", err)
	}
}

// The line that processes are compared by is the same for one secret, and shows none.
func TestLogHashKeys_OtherSecret_OtherID(t *testing.T) {
	var logs [3]strings.Builder
	for i, secret := range [][]byte{[]byte(strings.Repeat("x", 32)), []byte(strings.Repeat("y", 32)), nil} {
		for range 2 {
			secrets.LogHashKeys(slog.New(slog.NewTextHandler(&logs[i], &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})), secret)
		}
	}
	lines := strings.SplitAfter(logs[0].String(), "\n")
	if len(lines) != 3 || lines[0] != lines[1] || logs[0].String() == logs[1].String() || logs[2].Len() > 0 || strings.Contains(logs[0].String(), "xxxx") {
		t.Errorf("logged %q, %q and %q", &logs[0], &logs[1], &logs[2])
	}
}

// line64 is n bytes in base64.
func line64(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n))) }
