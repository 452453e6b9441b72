package figure

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type log struct {
	testing.TB
	text string
}

func (l *log) Helper()                 {}
func (l *log) Logf(f string, a ...any) { l.text = fmt.Sprintf(f, a...) }

func TestReport_FigureIsRead(t *testing.T) {
	want := Figure{Claim: "a \"claim\"\nof two lines", Where: "memory", Trials: 10, Failures: 1, Control: true, Detail: "d", Seeds: "1-10"}
	l := &log{TB: t}
	Report(l, want)
	text, ok := strings.CutPrefix(l.text, Prefix)
	var got Figure
	if err := json.Unmarshal([]byte(text), &got); err != nil || !ok || got != want || strings.Contains(l.text, "\n") {
		t.Errorf("%q came back as %+v, error %v", l.text, got, err)
	}
}

func TestBound_RuleOfThree(t *testing.T) {
	for want, f := range map[string]Figure{
		"< 0.003": {Trials: 1000}, "< 1.5e-07": {Trials: 20_000_000}, "0.01": {Trials: 100, Failures: 1}, "": {Trials: 5, Control: true},
	} {
		if got := f.Bound(); got != want {
			t.Errorf("%+v: bound %q, want %q", f, got, want)
		}
	}
	if got := (&Figure{}).Bound(); got != "" {
		t.Errorf("no trials: bound %q", got)
	}
}
