package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// Each relative link leads to a file, and to a heading if it names one.
func TestRelativeLinks_TargetsExist(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t, "*.md", "*/*.md", "*/*/*.md", "*/*/*/*.md")
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.name] = p.anchors()
	}
	for _, p := range all {
		for i, line := range p.prose {
			for _, link := range linksOf(line) {
				target, anchor, hasAnchor := strings.Cut(link, "#")
				if strings.Contains(target, ":") || strings.HasPrefix(target, "//") {
					continue // not ours
				}
				to := p.name
				if target != "" {
					to = path.Join(path.Dir(p.name), target)
				}
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(to)))
				switch names, isPage := anchors[to]; {
				case path.IsAbs(target) || strings.HasPrefix(to, ".."):
					t.Errorf("%s:%d: the link %s leads out of the repository", p.name, i+1, link)
				case err != nil:
					t.Errorf("%s:%d: the link %s leads nowhere", p.name, i+1, link)
				case hasAnchor && isPage && !names[anchor]:
					t.Errorf("%s:%d: %s has no heading that makes the anchor #%s", p.name, i+1, to, anchor)
				}
			}
		}
	}
}

var (
	code  = regexp.MustCompile("`[^`]*`")
	links = []*regexp.Regexp{
		regexp.MustCompile(`\]\(<?([^)\s>]+)`),               // [text](link "title"), ![text](link)
		regexp.MustCompile(`^\s*\[[^\]]+\]:\s*<?([^\s>]+)`),  // [name]: link
		regexp.MustCompile(`(?:\s|^)(?:href|src)="([^"]+)"`), // HTML
	}
)

// linksOf finds the links of a line outside of code.
func linksOf(line string) []string {
	line = code.ReplaceAllString(line, "")
	var found []string
	for _, re := range links {
		for _, m := range re.FindAllStringSubmatch(line, -1) {
			found = append(found, m[1])
		}
	}
	return found
}
