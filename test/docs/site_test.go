package docs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/test/internal/repo"
)

var errNoSphinx = errors.New("the generator of the site is not there, and cannot be fetched from PyPI")

// resource matches what a browser loads by itself from another server.
var resource = regexp.MustCompile(`(?i)<(?:script|img|iframe|source)[^>]*\bsrc="(?:https?:)?//|<link[^>]*\bhref="(?:https?:)?//|url\(["']?(?:https?:)?//|@import`)

// The site has each page and an index of words for its search, and loads nothing from
// other servers. Sphinx fails if a link leads nowhere.
func TestCampaign_Site_Built_HasEachPageAndTheSearch(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped in short mode")
	}
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "site")
	text, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "site", "site"), out).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
		proctest.Need(t, fmt.Errorf("%w: %s", errNoSphinx, text), errNoSphinx)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	index, err := os.ReadFile(filepath.Join(out, "searchindex.js"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, p := range pages(t, "docs/*.md", "docs/*/*.md") {
		name := strings.TrimSuffix(strings.TrimPrefix(p.name, "docs/"), ".md")
		html, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)+".html"))
		if err != nil {
			t.Error(err)
			continue
		}
		if m := resource.FindString(string(html)); m != "" {
			t.Errorf("%s loads from another server: %s", p.name, m)
		}
		if !strings.Contains(string(index), `"`+name+`"`) {
			t.Errorf("the search does not know %s", p.name)
		}
		count++
	}
	if _, err := os.Stat(filepath.Join(out, "index.html")); err != nil || count < 40 {
		t.Errorf("%d pages; index.html: %v", count, err)
	}
	styles, err := filepath.Glob(filepath.Join(out, "_static", "styles", "*.css"))
	if err != nil || len(styles) == 0 {
		t.Fatalf("the site has no styles: %v", err)
	}
	for _, style := range styles {
		css, err := os.ReadFile(style)
		if err != nil {
			t.Fatal(err)
		}
		if m := resource.FindString(string(css)); m != "" {
			t.Errorf("%s loads from another server: %s", style, m)
		}
	}
}

// Each page is in the index, so that a reader and the navigation of the site find it.
func TestIndex_EachPage_IsListed(t *testing.T) {
	index := pages(t, "docs/README.md")[0]
	text := strings.Join(index.prose, "\n")
	for _, p := range pages(t, "docs/*.md", "docs/how-to/*.md", "docs/reference/*.md") {
		if name := strings.TrimPrefix(p.name, "docs/"); p.name != index.name && !strings.Contains(text, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", p.name)
		}
	}
}
