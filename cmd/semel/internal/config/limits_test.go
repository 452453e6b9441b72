package config

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// Each limit has an option, whose default the help and docs/sidecar.md name. The page
// also names the metric.
func TestLimits_EachKind_DocumentedWithItsDefault(t *testing.T) {
	c, err := resolve(t, &Options{}, least)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/sidecar.md")
	if err != nil {
		t.Fatal(err)
	}
	l := c.Limits
	count := func(n int) string { return strconv.Itoa(n) }
	size := func(n int64) string { return Size(n).String() }
	defaults := map[limit.Kind]string{
		limit.Requests: count(l.Requests), limit.Keys: count(l.Keys), limit.Spool: size(l.Spool),
		limit.TenantRequests: count(l.TenantRequests), limit.TenantKeys: count(l.TenantKeys),
		limit.TenantSpool: size(l.TenantSpool), limit.TenantBytes: size(l.TenantBytes),
	}
	for _, k := range limit.Kinds() {
		option := k.Option()
		want, ok := defaults[k]
		if !ok {
			t.Errorf("no default of %s", k)
		}
		help := ""
		for f := range reflect.TypeFor[Limits]().Fields() {
			if f.Tag.Get("name") == option {
				help = f.Tag.Get("help")
			}
		}
		if _, after, _ := strings.Cut(help, "(default "); !strings.HasPrefix(after, want) || strings.ContainsAny(after[len(want):len(want)+1], "0123456789") {
			t.Errorf("--%s: the default is %s, and the help says %q", option, want, help)
		}
		row := ""
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "| `--"+option+"` | `"+k.String()+"` |") {
				row = strings.NewReplacer(",", "", " MiB", "MiB", "none ", "0 ").Replace(strings.SplitAfterN(line, "|", 4)[3])
			}
		}
		if row = strings.TrimSpace(row); row != want && !strings.HasPrefix(row, want+" ") {
			t.Errorf("--%s: the default is %s, and docs/sidecar.md says %q", option, want, row)
		}
	}
}

// An alert and a panel of the dashboard watch the refusals of each limit.
func TestLimits_EachKind_HasAlertAndPanel(t *testing.T) {
	for _, path := range []string{"alerts.yaml", "grafana/semel.json"} {
		text, err := os.ReadFile("../../../../docs/" + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range limit.Kinds() {
			if metric := "semel_limit_" + k.String() + "_refused_total"; !strings.Contains(string(text), metric) {
				t.Errorf("docs/%s does not watch %s", path, metric)
			}
		}
	}
}
