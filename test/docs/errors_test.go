package docs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	core "github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/test/internal/repo"
)

const errorsPage = "docs/reference/errors.md"

// errorsText is the page of errors, in one text.
func errorsText(t *testing.T) (page, string) {
	t.Helper()
	p := pages(t, errorsPage)[0]
	return p, strings.Join(p.prose, "\n")
}

var (
	sentinel = regexp.MustCompile(`(?m)^\t*(?:var )?(Err[A-Z]\w*)\s*= (?:errors\.New|fmt\.Errorf)\("((?:[^"\\]|\\.)*)"[,)]`)
	exported = regexp.MustCompile(`(?m)^\t*(?:var )?(Err[A-Z]\w*)\s*= (?:pgwire|handlertx|driver)\.Err`)
)

// Each error that a public package exports has a row with its text.
func TestErrorsPage_EachExportedError_HasItsText(t *testing.T) {
	files, err := repo.Files(".go")
	if err != nil {
		t.Fatal(err)
	}
	_, text := errorsText(t)
	again := map[string]bool{}
	for i := range files {
		for _, m := range exported.FindAllStringSubmatch(files[i].Text, -1) {
			again[files[i].Dir()+"."+m[1]] = true
		}
	}
	found := 0
	for i := range files {
		f := &files[i]
		if f.IsTest() || strings.Contains(f.Dir()+"/", "internal/") || strings.HasSuffix(f.Dir(), "test") || strings.HasPrefix(f.Name, "test/") || strings.HasPrefix(f.Name, "cmd/") {
			continue
		}
		pkg := regexp.MustCompile(`(?m)^package (\w+)`).FindStringSubmatch(f.Text)[1]
		for _, m := range sentinel.FindAllStringSubmatch(f.Text, -1) {
			name, words := pkg+"."+m[1], strings.TrimPrefix(m[2], "%w: ")
			if f.Dir() == "consume/driver" && again["consume."+m[1]] {
				name = "consume." + m[1] // as users know it
			}
			found++
			row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| `([^`]*)` \\| .").FindStringSubmatch(text)
			switch {
			case row == nil:
				t.Errorf("%s has no row for `%s`, whose text is %q", errorsPage, name, words)
			case !strings.HasPrefix(words, row[1]):
				t.Errorf("%s: `%s` has the text %q in the code, and %q on the page", errorsPage, name, words, row[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d errors were found in the code", found)
	}
}

var (
	codeOf   = regexp.MustCompile(`(?:\tCode\w+ += |semelhttp\.Problem\{.*Code: |\.Code, .* = )"([a-z_]+)"`)
	byName   = regexp.MustCompile(`(?m)^\t(Code\w+) += "([a-z_]+)"`)
	statuses = regexp.MustCompile(`(?m)^\t(?:(Code\w+): \{|\w+ += semelhttp\.Problem\{)Status: http\.Status(\w+),(?: Code: "([a-z_]+)")?`)
)

// Each refusal that the code can send has a heading, to which its type leads, and the
// status that the code gives it.
func TestErrorsPage_EachRefusal_HasHeadingAndStatus(t *testing.T) {
	p, text := errorsText(t)
	anchors := p.anchors()
	files, err := repo.Files(".go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	names := map[string]string{}
	for i := range files {
		if f := &files[i]; !f.IsTest() && (f.Dir() == "semelhttp" || strings.HasPrefix(f.Name, "cmd/semel/internal/")) {
			for _, m := range codeOf.FindAllStringSubmatch(f.Text, -1) {
				if found[m[1]] = true; !anchors[m[1]] {
					t.Errorf("%s: %s has no heading %s", f.Name, errorsPage, m[1])
				}
			}
			for _, m := range byName.FindAllStringSubmatch(f.Text, -1) {
				names[m[1]] = m[2]
			}
		}
	}
	checked := 0
	for i := range files {
		if f := &files[i]; f.Name == "semelhttp/problem.go" || f.Dir() == "cmd/semel/internal/problem" {
			for _, m := range statuses.FindAllStringSubmatch(f.Text, -1) {
				code := names[m[1]] + m[3]
				_, section, _ := strings.Cut(text, "\n### "+code+"\n\n")
				line, _, _ := strings.Cut(section, ".")
				line, _, _ = strings.Cut(line, ",")
				if checked++; strings.Map(letters, line) != m[2] {
					t.Errorf("%s: %s has the status %s in the code, and %q on the page", errorsPage, code, m[2], line)
				}
			}
		}
	}
	if len(found) < 35 || checked < 34 {
		t.Errorf("only %d codes and %d statuses were found in the code", len(found), checked)
	}
}

// letters drops everything from a status and its text but the letters.
func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

// The type of a refusal is the address of its heading.
func TestErrorsPage_TypeOfRefusal_LeadsToIt(t *testing.T) {
	guard, err := core.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelhttp.Middleware(guard, func(*http.Request) (string, error) { return "ann", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	once(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	var doc struct{ Type string }
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	address, anchor, _ := strings.Cut(doc.Type, "#")
	if p, _ := errorsText(t); address != "https://github.com/semel-go/semel/blob/main/"+errorsPage || !p.anchors()[anchor] {
		t.Errorf("the type is %s", doc.Type)
	}
}
