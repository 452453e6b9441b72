//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	semelcli "github.com/semel-go/semel/cmd/semel/internal/cli"
	"github.com/semel-go/semel/internal/pagetest"
)

// series is a metric as the programs serve it.
type series struct {
	help, kind string
	labels     map[string]bool
	programs   []string
}

var sample = regexp.MustCompile(`^([a-z_0-9]+?)(?:_bucket|_sum|_count)?\{(.*)\} `)

// addSeries adds the metrics of a program from its text for Prometheus.
func addSeries(all map[string]*series, program, text string) {
	for line := range strings.Lines(text) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name, value, _ := strings.Cut(strings.TrimPrefix(rest, "HELP "), " "); {
		case mark == "#" && strings.HasPrefix(rest, "HELP "):
			if all[name] == nil {
				all[name] = &series{help: value, labels: map[string]bool{}}
			} else if !strings.Contains(all[name].help, value) {
				all[name].help += " " + value // it says the same of another program
			}
			all[name].programs = append(all[name].programs, program)
		case mark == "#":
			name, kind, _ := strings.Cut(strings.TrimPrefix(rest, "TYPE "), " ")
			all[name].kind = kind
		default:
			if m := sample.FindStringSubmatch(line); m != nil && all[m[1]] != nil {
				for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(m[2], -1) {
					all[m[1]].labels[label[1]] = true
				}
			}
		}
	}
}

func TestReference_Metrics_AreWhatTheProgramsServe(t *testing.T) {
	w := startWatched(t)
	all := map[string]*series{}
	for _, job := range []string{"proxy", "deliver", "publish"} {
		_, text := get(t, "http://"+w.targets[job]+"/metrics")
		addSeries(all, job, text)
	}
	addSeries(all, "proxy --observe", observedSeries(t, w))
	addSeries(all, "saga stats", sagaGauges(t))

	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Made from the code by "make docs". Change the help texts in the code, and not this page. -->

These are the metrics that ` + "`semel proxy`, `semel deliver` and `semel outbox publish`" + ` serve on ` + "`/metrics`" + ` of
` + "`--admin-listen`" + `, in the text format of Prometheus, and the gauges of ` + "`semel saga stats --prometheus`" + `. Times are in
seconds. [Observability](../observability.md) says which to watch, and explains the values of the labels.
A Go program has [the metrics of OpenTelemetry](opentelemetry.md).

| metric | type | labels | of | meaning |
|---|---|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		delete(s.labels, "le")
		labels := strings.Join(slices.Sorted(maps.Keys(s.labels)), ", ")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, s.kind, labels, strings.Join(s.programs, ", "), pagetest.Cell(s.help))
	}
	pagetest.Check(t, "docs/reference/metrics.md", b.String())
}

// observedSeries is the part of the metrics of a proxy with --observe that other proxies do not
// have, after a request that counts in each of them.
func observedSeries(t *testing.T, w *watched) string {
	t.Helper()
	w.post(t.Context(), t, "crash", `{"crash": true}`)
	var text string
	eventually(t, "the observing proxy counts a request in doubt", func() bool {
		_, text = get(t, "http://"+w.targets["observe"]+"/metrics")
		return strings.Contains(text, "semel_observed_doubt_total{") && strings.Contains(text, "semel_observed_requests_total{")
	})
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "semel_observed_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// sagaGauges is what "semel saga stats --prometheus" writes.
func sagaGauges(t *testing.T) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	var stdout, stderr bytes.Buffer
	for _, args := range [][]string{{"migrate", "--store", url}, {"saga", "stats", "order", "--prometheus", "--store", url}} {
		stdout.Reset()
		if code := semelcli.Run(t.Context(), args, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("semel %q: %d: %s", args, code, stderr.String())
		}
	}
	return stdout.String()
}
