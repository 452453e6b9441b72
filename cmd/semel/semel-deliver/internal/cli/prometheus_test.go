//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// The files that operators load into Prometheus and Grafana.
const (
	docs      = "../../../../../docs/"
	dashboard = docs + "grafana/semel.json"
	alerts    = docs + "alerts.yaml"
)

var errNoPrometheus = errors.New("not installed: on Debian, install the package prometheus")

// prometheusProgram finds a program of Debian's package prometheus.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, errNoPrometheus)
	}
	proctest.Need(t, err, errNoPrometheus)
	return path
}

func TestAlerts_Promtool_EachFiresInTroubleOnly(t *testing.T) {
	promtool := prometheusProgram(t, "promtool")
	for _, args := range [][]string{{"check", "rules", alerts}, {"test", "rules", "testdata/alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// monitor is a Prometheus that scrapes targets, and has loaded the alerts.
type monitor struct{ url string }

func startMonitor(t *testing.T, targets map[string]string) *monitor {
	t.Helper()
	path := prometheusProgram(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs(alerts)
	if err != nil {
		t.Fatal(err)
	}
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [" + strconv.Quote(rules) + "]\nscrape_configs:\n"
	for job, addr := range targets {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, addr)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &monitor{}
	server := &proctest.Server{
		Name: "prometheus", Dir: dir, Limit: 2 * time.Minute,
		Command: func(bool) (*exec.Cmd, error) {
			port, err := proctest.FreePort()
			if err != nil {
				return nil, err
			}
			m.url = fmt.Sprint("http://127.0.0.1:", port)
			return exec.Command(path, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
				fmt.Sprint("--web.listen-address=127.0.0.1:", port), "--log.level=warn"), nil
		},
		Ready: func(*proctest.Process) error {
			res, err := http.Get(m.url + "/-/ready")
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return errors.New(res.Status)
			}
			return nil
		},
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Remove(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	return m
}

// ask asks the API of Prometheus, and decodes the data of its answer.
func (m *monitor) ask(t *testing.T, path string, data any) error {
	t.Helper()
	_, body := get(t, m.url+path)
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %v: %s", path, err, body)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// hasData reports whether a query has a result that is a number.
func (m *monitor) hasData(t *testing.T, query string) bool {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := m.ask(t, "/api/v1/query?query="+url.QueryEscape(query), &data); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) {
			return true
		}
	}
	return false
}

// queries are the queries of the dashboard, by the title of their panel, as Grafana
// sends them.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			all[p.Title] = append(all[p.Title], strings.NewReplacer("$__rate_interval", "30s", "$job", ".*").Replace(q.Expr))
		}
	}
	return all
}

// Each query of the dashboard has data while a proxy, a delivery and a publisher work
// and meet faults, and each alert can be evaluated and names the next step.
func TestDashboard_RealPrometheus_EachQueryHasData(t *testing.T) {
	prometheusProgram(t, "prometheus") // before anything else is started
	world := startWatched(t)
	m := startMonitor(t, world.targets)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		world.load(ctx, t)
	}()
	defer func() {
		stop()
		<-done
	}()
	count := 0
	for title, all := range queries(t) {
		for _, query := range all {
			count++
			eventually(t, fmt.Sprintf("panel %q has data: %s", title, query), func() bool { return m.hasData(t, query) })
		}
	}
	if count < 20 {
		t.Errorf("only %d queries were found in the dashboard", count)
	}
	for _, fault := range []string{
		`semel_in_doubt_records{job="proxy"} > 0`, `semel_in_doubt_oldest_seconds{job="proxy"} > 0`, `semel_calls_total{job="proxy",outcome="replayed"} > 0`,
		`semel_calls_total{job="proxy",outcome="refused_mismatch"} > 0`, `semel_calls_total{job="proxy",outcome="parked"} > 0`,
		`semel_message_decisions_total{job="deliver",action="dead-letter"} > 0`, `semel_message_decisions_total{job="deliver",reason="duplicate"} > 0`,
		`semel_outbox_sent_total{job="publish"} > 0`,
	} {
		eventually(t, fault, func() bool { return m.hasData(t, fault) })
	}
	if !strings.Contains(world.deliver.log.String(), `level=WARN msg="a message goes to the dead letters"`) {
		t.Error("dead letters are not logged by default")
	}
	m.checkAlerts(t)
	checkTable(t, world.targets)
}

// nextStep is a command, or a page of the console or of a program.
var nextStep = regexp.MustCompile(`semel (inspect|doctor|sweep|outbox) |curl -i |page|/readyz`)

func (m *monitor) checkAlerts(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct {
				Name, Health, LastError string
				Annotations             map[string]string
			}
		}
	}
	if err := m.ask(t, "/api/v1/rules", &data); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(docs + "observability.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			count++
			if r.Health != "ok" {
				t.Errorf("the alert %s cannot be evaluated: %s", r.Name, r.LastError)
			}
			if !nextStep.MatchString(r.Annotations["next"]) || r.Annotations["summary"] == "" {
				t.Errorf("the alert %s names no next step: %v", r.Name, r.Annotations)
			}
			if !strings.Contains(string(page), "`"+r.Name+"`") {
				t.Errorf("docs/observability.md does not explain the alert %s", r.Name)
			}
		}
	}
	if count == 0 {
		t.Error("Prometheus has no alerts")
	}
}

var (
	metricLine = regexp.MustCompile(`(?m)^# TYPE (\S+) `)
	tableLine  = regexp.MustCompile("(?m)^\\| `(semel_[a-z_0-9]+)")
)

// checkTable compares the documented table of metrics with the metrics of the programs. Those of
// sagas come from a command.
func checkTable(t *testing.T, targets map[string]string) {
	t.Helper()
	page, err := os.ReadFile(docs + "reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, present := map[string]bool{}, map[string]bool{}
	for _, l := range tableLine.FindAllStringSubmatch(string(page), -1) {
		documented[l[1]] = !strings.HasPrefix(l[1], "semel_saga_")
	}
	for _, addr := range targets {
		_, text := get(t, "http://"+addr+"/metrics")
		for _, l := range metricLine.FindAllStringSubmatch(text, -1) {
			present[l[1]] = true
		}
	}
	for name := range present {
		if !documented[name] {
			t.Errorf("docs/reference/metrics.md does not have the metric %s", name)
		}
	}
	for name, served := range documented {
		if served && !present[name] {
			t.Errorf("docs/reference/metrics.md has the metric %s, which no program has", name)
		}
	}
}
