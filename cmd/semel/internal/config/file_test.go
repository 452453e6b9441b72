package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

func TestReadFile_Mistake_NamesLineFieldValue(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"an unknown field":           {"upstream: http://a\nlisten-on: x\n", `f.yaml:2: "listen-on": is no field`},
		"an unknown field of a rule": {"rules:\n  - match: /a\n    retries: 3\n", `f.yaml:3: "retries": is no field`},
		"a bad duration":             {"listen: x\nlease: abc\n", `f.yaml:2: lease: "abc" is not a duration`},
		"a bad duration of a rule":   {"rules:\n  - match: /a\n    wait: soon\n", `f.yaml:3: rules[0].wait: "soon" is not a duration`},
		"a bad size":                 {"max-body: 10MB\n", `f.yaml:1: max-body: "10MB" is not a size`},
		"a list for a duration":      {"lease: [1s]\n", `f.yaml:1: lease[0]: must be one value`},
		"a word for a number":        {"max-attempts: many\n", `f.yaml:1: max-attempts: "many": must be a whole number`},
		"a word for a bool":          {"no-store: perhaps\n", `f.yaml:1: no-store: "perhaps": must be true or false`},
		"a word for a list":          {"methods: POST\n", `f.yaml:1: methods: "POST": must be a list`},
		"a list for the file":        {"- a\n", `f.yaml:1: [0]: must be options`},
		"no YAML":                    {"listen: [\n", `f.yaml:1: did not find expected node content`},
		"a tab":                      {"rules:\n\t- match: /a\n", `f.yaml:2: found character that cannot start any token`},
		"a field twice":              {"lease: 1s\nlease: 2s\n", `f.yaml:2: lease: mapping key "lease" already defined`},
		"a field without a value":    {"lease: 1s\ntrusted-gateways:\n#  - 10.0.0.0/8\n", `f.yaml:2: trusted-gateways: has no value; give it one, or remove the line`},
		"a field of a rule without":  {"rules:\n  - match: /a\n    require-key:\n", `f.yaml:3: rules[0].require-key: has no value`},
		"two documents":              {"lease: 1s\n---\nlease: 2s\n", `f.yaml: has more than one document`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.doc))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || !input.Is(err) {
				t.Errorf("got %v, want %s…", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "config.") {
				t.Errorf("%v speaks of Go's types", err)
			}
		})
	}
}

func TestReadFile_SeveralMistakes_AllReported(t *testing.T) {
	_, err := Parse("f.yaml", []byte("a: 1\nb: 2\nlisten: ok\n"))
	if lines := input.Lines(err); len(lines) != 2 {
		t.Errorf("got %q, want two lines", lines)
	}
}

func TestReadFile_Empty_NoOptions(t *testing.T) {
	for _, doc := range []string{"", "# only a comment\n", "rules:\n"} {
		s, err := Parse("f.yaml", []byte(doc))
		if err != nil || s.File.Listen != nil || len(s.File.Rules) != 0 {
			t.Errorf("%q: got %+v, %v", doc, s, err)
		}
	}
}

func TestReadFile_Unreadable_InputError(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "absent.yaml"): "no such file", big: "which is the most"} {
		if _, err := ReadFile(path); err == nil || !input.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", filepath.Base(path), err, want)
		}
	}
	good := filepath.Join(dir, "good.yaml")
	if err := os.WriteFile(good, []byte("listen: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadFile(good); err != nil || *s.File.Listen != "here" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("upstream: http://127.0.0.1:1\nscope: single\nlease: 10s\nrules:\n  - match: POST /a/{id}\n    on-doubt: park\n"))
	f.Add([]byte("rules: [{match: /a, pass-through: true}, {match: /b, key-from: [x.y], wait: 3s}]\nmax-body: 1KiB\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? {x: y}\n: z\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := Parse("f.yaml", doc)
		if err != nil {
			if !input.Is(err) {
				t.Errorf("%v is no input.Error", err)
			}
			return
		}
		c, err := Resolve(&Options{}, s)
		if err != nil {
			if !input.Is(err) {
				t.Errorf("%v is no input.Error", err)
			}
			return
		}
		if c.Upstream == nil || len(c.Rest.Methods) == 0 || c.Lease <= 0 || len(c.Rules) != len(s.File.Rules) {
			t.Errorf("accepted, but not complete: %+v", c)
		}
	})
}

// A value that cannot be read does not hide the others, nor the fields that are unknown.
func TestParse_SeveralMistakes_NamesAll(t *testing.T) {
	_, err := Parse("f", []byte("lease: 30\ntenant_keys: 5\nmax-body: 10 apples\nrequire-key: maybe\nrules:\n- match: /a\n  wait: soon\n  on_doubt: park\n"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`f:1: lease: "30" is not a duration`, `f:2: "tenant_keys": is no field that is known here; did you mean tenant-keys?`, `f:3: max-body: "10 apples" is not a size`,
		`f:4: require-key: "maybe": must be true or false`, `f:7: rules[0].wait: "soon" is not a duration`, `f:8: "on_doubt": is no field that is known here; did you mean on-doubt?`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in\n%v", want, err)
		}
	}
}
