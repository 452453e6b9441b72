package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestQuartiles_OfRounds(t *testing.T) {
	for want, values := range map[Stat][]float64{
		{}: nil, {5, 5, 5}: {5}, {2, 3, 4}: {5, 1, 4, 2, 3}, {3, 5, 7}: {9, 8, 7, 6, 5, 4, 3, 2, 1}, {1.235, 1.235, 1.235}: {1.23456},
	} {
		if got := quartiles(values); got != want {
			t.Errorf("%v: %v, want %v", values, got, want)
		}
	}
}

func TestResults_Written_AreRead(t *testing.T) {
	folder := t.TempDir()
	want := &results{header{Machine: "m", Go: "go1", Commit: "abc", Date: "2026-11-28 01:02", Took: "1s", Rounds: 9, Each: "1ms", Others: Stat{1, 2, 3}},
		[]Figure{{Group: "g", Name: "a < b", Kind: newCalls, N: 4, Values: map[string]Stat{"rate": {1, 2, 3}}}}}
	if err := want.write(filepath.Join(folder, "stores.jsonl")); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(folder)
	if err != nil || len(r.sections) != 1 || !reflect.DeepEqual(r.sections["stores"], want) {
		t.Fatalf("%+v, %v", r.sections["stores"], err)
	}
	if got := r.stat("stores", "g", "a < b", newCalls, 4, "rate"); got != (Stat{1, 2, 3}) || len(r.missing) != 0 {
		t.Errorf("the rate is %v; missing: %v", got, r.missing)
	}
	if r.stat("stores", "g", "", newCalls, 4, "p99"); len(r.missing) != 1 {
		t.Errorf("a figure that is not there is not reported: %v", r.missing)
	}
}

func TestFiguresIn_LogOfTest(t *testing.T) {
	figures, err := figuresIn([]byte("=== RUN\n    x_test.go:1: benchmark: {\"group\":\"g\",\"name\":\"n\",\"n\":2,\"values\":{\"rate\":[1,2,3]}}\nok\n"))
	if want := []Figure{{Group: "g", Name: "n", N: 2, Values: map[string]Stat{"rate": {1, 2, 3}}}}; err != nil || !reflect.DeepEqual(figures, want) {
		t.Errorf("%v, %v", figures, err)
	}
	if _, err := figuresIn([]byte("ok\n")); !errors.Is(err, errNoFigure) {
		t.Errorf("a log without figures gives %v", err)
	}
	if _, err := figuresIn([]byte("benchmark: {\n")); err == nil {
		t.Error("a broken figure is no error")
	}
}

func TestCheckedCall_WrongAnswerOrRun_IsError(t *testing.T) {
	if err := checked(nil, answer, true, true); err != nil {
		t.Error(err)
	}
	if checked(nil, answer, true, false) == nil || checked(nil, "another", true, true) == nil || checked(io.EOF, answer, true, true) == nil {
		t.Error("a handler that ran for a replay, another answer or an error is accepted")
	}
}

func TestShardsFor_FullestShardStaysUnderRate(t *testing.T) {
	r := &report{sections: map[string]*results{"shards": {figures: []Figure{
		{Kind: eachKeyOnce, N: 2, Values: map[string]Stat{"most": {1, 1.1, 1}}}, {Kind: eachKeyOnce, N: 8, Values: map[string]Stat{"most": {1, 1.2, 1}}},
	}}}}
	calls := peak() * (1 + replayRate)
	for want, rate := range map[int]float64{1: calls, 2: calls * .55, 3: calls * .54, 8: calls * .151, 0: calls * .149} {
		if got := r.shardsFor(rate); got != want {
			t.Errorf("%.0f calls a second on shards of %.0f: %d shards, want %d", calls, rate, got, want)
		}
	}
}

func TestLoad_UnevenCalls_CountedBySecond(t *testing.T) {
	second := int(peak())
	even := load(2, 2*second, func(i int) uint16 { return uint16(i % 2) })
	if even["share"].Median() != 1 || even["most"].Median() != 1 {
		t.Errorf("equal shares: %v", even)
	}
	uneven := load(2, 2*second, func(i int) uint16 { return uint16(i / second) }) // a shard in each second
	if uneven["share"].Median() != 1 || uneven["most"].Median() != 2 {
		t.Errorf("one shard in each second: %v", uneven)
	}
}

func TestChart_IsXMLWithEachLabel(t *testing.T) {
	svg := chart("A & B", panel{title: "p99, ms", x: "callers", ticks: []string{"1", "4"}, log: true, series: []series{
		{name: "Semel", bold: true, values: []Stat{{1, 2, 3}, {10, 20, 30}}}, {name: "<rival>", values: []Stat{{}, {10, 20, 30}}},
	}})
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{"A &amp; B", ">Semel<", "&lt;rival&gt;", "prefers-color-scheme:dark"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart has no %q", want)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("a place is not a number:\n%s", svg)
	}
}

func TestGrid_RoundValuesBetweenBounds(t *testing.T) {
	for _, p := range []panel{{}, {log: true}} {
		for _, high := range []float64{0.02, 1, 7.5, 1000, 123_456} {
			p.series = []series{{values: []Stat{once(high / 50), once(high)}}}
			low, top := p.bounds()
			if at := p.grid(low, top); len(at) < 2 || len(at) > 8 || at[len(at)-1] > top || at[0] < low {
				t.Errorf("log %v, highest %v: lines at %v", p.log, high, at)
			}
		}
	}
}

func TestNumbers_InText(t *testing.T) {
	for want, got := range map[string]string{
		"1,234,567": thousands(1234567), "999": thousands(999), "0.12": number(.123, 2), "1,235": number(1234.5, 2), "512 GB": size(512e9), "1.0 KB": size(1000), "20 B": size(20),
		"2.00 (1.00–3.00)": span(Stat{1, 2, 3}, 2), "5.0": span(once(5), 1), "12.5 k": short(12_500), "1.2 M": short(1_200_000),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
