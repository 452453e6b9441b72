package secrets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		"":                                     "has no secret",
		"# nothing\n":                          "has no secret",
		"a\n":                                  "line 1 is not id:hex",
		"unkeyed\n":                            "has no secret",
		"a:" + digits + "\nunkeyed\n":          "line 2: unkeyed can be the first line only",
		"unkeyed\nunkeyed\na:" + digits:        "line 2: unkeyed can be the first line only",
		"\na:xyz\n":                            "line 2 is not id:hex",
		":" + digits:                           "line 1: the id must be unique",
		"a:" + digits + "\na:" + digits:        "line 2: the id must be unique",
		strings.Repeat("x", 65) + ":" + digits: "line 1: the id must be unique",
		"a:0011":                               "line 1: the secret has 2 bytes; at least 16",
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

func TestRead_MissingFile_InputError(t *testing.T) {
	if _, err := secrets.Read(filepath.Join(t.TempDir(), "none"), "--secret-file"); !input.Is(err) {
		t.Errorf("got %v", err)
	}
}
