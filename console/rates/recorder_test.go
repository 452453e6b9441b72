package rates_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console/rates"
)

// transport answers requests without a network, so that a test has its own time.
type transport func(r *http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, text string) *http.Response {
	w := httptest.NewRecorder()
	w.WriteHeader(status)
	_, _ = w.WriteString(text)
	return w.Result()
}

func open(t *testing.T, answers func(host string) string, urls ...string) *rates.Recorder {
	t.Helper()
	r, err := rates.New(rates.Options{URLs: urls, Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if text := answers(r.URL.Host); text != "" {
			return answer(http.StatusOK, text), nil
		}
		return answer(http.StatusServiceUnavailable, ""), nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func metrics(executed, replayed, mismatch int) string {
	return fmt.Sprintf(`# HELP semel_calls_total Calls that have ended
# TYPE semel_calls_total counter
semel_calls_total{operation="a\"}b",outcome="executed",rule="/"} %d
semel_calls_total{operation="pay",outcome="replayed",rule="/"} %d 1700000000000
semel_calls_total{operation="pay",outcome="refused_mismatch",rule="/"} %d
semel_calls_total{operation="pay",outcome="refused_canceled",rule="/"} 1000
semel_events_total{kind="replayed",operation="pay",rule="/"} 5000
`, executed, replayed, mismatch)
}

func TestRecorder_TwoProcesses_SumsCallsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		r := open(t, func(host string) string {
			i := int(n.Load())
			if host == "b" {
				return metrics(100+5*i, 0, i)
			}
			return metrics(7, 10*i, 0)
		}, "http://a/metrics", "http://b/metrics")
		r.Read(t.Context())
		if s := r.Snapshot(); len(s.Series) != 0 || s.Processes != 2 {
			t.Errorf("after one reading: %+v", s)
		}
		for range 3 {
			time.Sleep(10 * time.Second)
			n.Add(1)
			r.Read(t.Context())
		}
		for i, want := range []rates.Series{{Name: "Executions", Points: []float64{30, 30, 30}}, {Name: "Replays", Points: []float64{60, 60, 60}}, {Name: "Conflicts", Points: []float64{6, 6, 6}}} {
			if got := r.Snapshot().Series[i]; got.Name != want.Name || !slices.Equal(got.Points, want.Points) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}

// A process that starts again counts from 0. One that is silent for a while has no rate
// then, and its calls count when it answers again.
func TestRecorder_ProcessRestartsOrIsSilent_NoRateIsNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := metrics(1000, 0, 0)
		r := open(t, func(string) string { return text }, "http://a/metrics")
		var got []float64
		for _, text = range []string{metrics(1000, 0, 0), metrics(4, 0, 0), "", metrics(10, 0, 0)} {
			r.Read(t.Context())
			s := r.Snapshot()
			if silent := text == ""; silent != (len(s.Silent) == 1) || silent && !strings.Contains(s.Silent[0], "http://a/metrics answers 503") {
				t.Errorf("silent: %q", s.Silent)
			}
			time.Sleep(time.Minute)
		}
		if got = r.Snapshot().Series[0].Points; !slices.Equal(got, []float64{4, 0, 6}) {
			t.Errorf("executions a minute: %v, want 4, 0, 6", got)
		}
	})
}

func TestRecorder_RunsForTwoHours_KeepsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := open(t, func(string) string { n++; return metrics(n, 0, 0) }, "http://a/metrics")
		go r.Run(t.Context())
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := r.Snapshot(); len(got.Series[0].Points) != 360 || got.Every != 10*time.Second || n < 700 {
			t.Errorf("%d points after %d readings", len(got.Series[0].Points), n)
		}
	})
}

// Each outcome is in a chart, except the calls that nobody served.
func TestRecorder_EachOutcome_IsCounted(t *testing.T) {
	for _, outcome := range semel.EventOutcomes() {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			r := open(t, func(string) string {
				n++
				return fmt.Sprintf("semel_calls_total{operation=\"o\",outcome=%q,rule=\"/\"} %d\n", outcome, n)
			}, "http://a/metrics")
			r.Read(t.Context())
			time.Sleep(time.Minute)
			r.Read(t.Context())
			sum := 0.0
			for _, s := range r.Snapshot().Series {
				sum += s.Points[0]
			}
			want := 1.0
			if outcome == "refused" || outcome == "refused_canceled" || outcome == "refused_store_unavailable" {
				want = 0
			}
			if sum != want {
				t.Errorf("%s: %v calls a minute are shown, want %v", outcome, sum, want)
			}
		})
	}
}

func TestRecorder_OtherMetrics_ErrorSaysSo(t *testing.T) {
	for text, want := range map[string]string{
		"up 1\n": "http://a/metrics: the answer has no semel_calls_total",
		`semel_calls_total{outcome="executed"} x`: "http://a/metrics: semel_calls_total: strconv.ParseFloat",
		`semel_calls_total{outcome="executed"}`:   "semel_calls_total has no value",
	} {
		r := open(t, func(string) string { return text }, "http://a/metrics")
		r.Read(t.Context())
		if s := r.Snapshot(); len(s.Silent) != 1 || !strings.Contains(s.Silent[0], want) {
			t.Errorf("%q: got %q, want %q", text, s.Silent, want)
		}
	}
}

func TestNew_InvalidOptions_ErrorNamesValue(t *testing.T) {
	for want, o := range map[string]rates.Options{
		"URLs is empty":                 {},
		`"a:1/metrics" is no address`:   {URLs: []string{"a:1/metrics"}},
		`"ftp://a/x" is no address`:     {URLs: []string{"ftp://a/x"}},
		"Every is 100ms; it must be at": {URLs: []string{"http://a/metrics"}, Every: 100 * time.Millisecond},
	} {
		if _, err := rates.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
