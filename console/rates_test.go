package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/console/rates"
)

// recorder reads a process of which each reading finds more calls, and one that is away.
func recorder(t *testing.T) *rates.Recorder {
	t.Helper()
	var n atomic.Int64
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "semel_calls_total{outcome=\"executed\"} %d\nsemel_calls_total{outcome=\"replayed\"} 7\n", 1000*n.Add(1))
	}))
	t.Cleanup(process.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(away.Close)
	r, err := rates.New(rates.Options{URLs: []string{process.URL + "/metrics", away.URL + "/<b>"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRates_TwoReadings_DrawsCharts(t *testing.T) {
	r := recorder(t)
	s := newSite(t, console.Options{Rates: r})
	s.want(s.get("rates"), http.StatusOK, "No rate is known yet.", "of 2 processes")
	for range 2 {
		r.Read(t.Context())
	}
	a := s.get("rates")
	s.want(a, http.StatusOK,
		`<a href="rates" aria-current="page">`, `aria-label="Executions in the last`, `aria-label="Replays in the last 10 s: 0 a minute now, 0 at most"`,
		`<polyline points="0.0,100.0 600.0,100.0 "/>`, `/%3Cb%3E answers 404 Not Found`, `data-live="live/rates?shown=`)
	if strings.Contains(a.body, "Executions in the last 10 s: 0 a minute") {
		t.Error("1000 executions between two readings are drawn as 0")
	}
}

func TestRates_NoProcesses_PageIsNotThere(t *testing.T) {
	s := newSite(t, console.Options{})
	if a := s.get(""); strings.Contains(a.body, `href="rates"`) {
		t.Error("the page is in the menu")
	}
	s.want(s.get("rates"), http.StatusNotFound, "it was not told which processes to ask")
}

// The password and the query of an address of metrics are not for everybody who can open
// the pages.
func TestRates_AddressHasSecrets_AreNotShown(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, p, _ := r.BasicAuth(); p != "canary" || r.FormValue("token") != "canary" {
			t.Errorf("%s did not come with its secrets", r.URL)
		}
		if r.URL.Path == "/other" {
			return // no metrics
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	address := strings.Replace(busy.URL, "http://", "http://prom:canary@", 1)
	r, err := rates.New(rates.Options{URLs: []string{address + "/metrics?token=canary", address + "/other?token=canary", "http://prom:canary@127.0.0.1:1/away?token=canary"}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, console.Options{Rates: r})
	r.Read(t.Context())
	a := s.get("rates")
	s.want(a, http.StatusOK, "/metrics answers 503", "/other: the answer has no semel_calls_total", "http://127.0.0.1:1/away: dial tcp")
	if strings.Contains(a.body, "canary") {
		t.Errorf("the page shows a secret: %s", a.body)
	}
	for _, wrong := range []string{"ftp://prom:canary@a/metrics", "http://a b/?token=canary", "http://prom:can%zzary@a/"} {
		if _, err := rates.New(rates.Options{URLs: []string{"http://a/metrics", wrong}}); err == nil || strings.Contains(err.Error(), "can") || !strings.Contains(err.Error(), "URLs[1]") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
