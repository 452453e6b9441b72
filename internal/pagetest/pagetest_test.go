package pagetest

import (
	"os"
	"path/filepath"
	"testing"
)

// record is a testing.TB that notes failures.
type record struct {
	testing.TB
	failed bool
}

func (*record) Helper()                 {}
func (r *record) Errorf(string, ...any) { r.failed = true }

func TestCheck_PageDiffers_FailsOrWrites(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.work": "", "page.md": "one\ntwo\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv(Write, "")
	for text, fails := range map[string]bool{"one\ntwo\n": false, "one\n2\n": true, "one\n": true, "one\ntwo\nthree\n": true} {
		r := &record{TB: t}
		if Check(r, "page.md", text); r.failed != fails {
			t.Errorf("%q: failed is %v", text, r.failed)
		}
	}
	t.Setenv(Write, "1")
	Check(t, "page.md", "new\n")
	t.Setenv(Write, "")
	Check(t, "page.md", "new\n")
}

func TestCell_LinesAndBars_OneCell(t *testing.T) {
	if got := Cell("a |\n  b"); got != `a \| b` {
		t.Errorf("%q", got)
	}
}
