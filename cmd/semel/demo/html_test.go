package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteHTML_EachDemo_OnePageWithChartsAndNoNetwork(t *testing.T) {
	requests, events, saga := shown(), shownEvents(), shownSaga()
	for name, c := range map[string]struct {
		r       report
		courses []*Course
		summary string
	}{
		"requests": {requests, []*Course{&requests.Without.Course, &requests.With.Course}, "With Semel every order was charged exactly once"},
		"events":   {events, []*Course{&events.Without.Course, &events.With.Course}, "With Semel every order was charged exactly once"},
		"saga":     {saga, []*Course{&saga.Without.Course, &saga.With.Course}, "With Semel every order ended booked, refused or undone"},
	} {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for _, course := range c.courses {
				course.latencies = []float64{9, 10, 12}
				kills += len(course.Timeline)
			}
			path := filepath.Join(t.TempDir(), "report.html")
			if err := c.r.page().write(path); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := string(b)
			if n := strings.Count(text, "<svg"); n != 3 {
				t.Errorf("%d charts, want 3", n)
			}
			if strings.Count(text, "<circle") != kills {
				t.Errorf("%d circles for %d kills", strings.Count(text, "<circle"), kills)
			}
			for _, address := range []string{"http:", "https:", "src=", "href=", "@import", "url("} {
				if strings.Contains(text, address) {
					t.Errorf("the page contains %q, which may need the network", address)
				}
			}
			if strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "NaN") {
				t.Error("the template refused a value, or a coordinate is not a number")
			}
			if !strings.Contains(text, c.summary) {
				t.Error("the summary is missing")
			}
		})
	}
}

func TestWriteHTML_BrokenGuarantee_IsNamed(t *testing.T) {
	r := shown()
	r.With.DoubleCharges = 3
	_ = r.judge()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := r.page().write(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), "BROKEN: with Semel: 3 double charges") || strings.Contains(string(b), "exactly once") {
		t.Errorf("the page hides the double charges; %v", err)
	}
}

func TestChargeChart_ManyCharges_LastGroupHoldsTheRest(t *testing.T) {
	r := shown()
	r.Without.ChargesPerOrder = []int{0, 1, 2, 3, 4, 5, 6, 7}
	c := r.chargeChart()
	if last := c.Bars[len(c.Bars)-2]; len(c.Groups) != mostGroups || last.Label != "18" || c.Groups[mostGroups-1].Text != "5× or more" {
		t.Errorf("the last bar is %+v of groups %+v", last, c.Groups)
	}
}
