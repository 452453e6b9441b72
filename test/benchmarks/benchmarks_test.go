package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/test/internal/repo"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		fmt.Fprintln(os.Stderr, play(role, os.Getenv(targetVar)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// longestLabel is how many letters fit beside a panel.
const longestLabel = 22

// tiny is enough to see that each section runs.
var tiny = options{
	rounds: 1, each: 5 * time.Millisecond, callers: []int{1, 4}, pool: 8, records: []int{100, 300}, kept: 100, keys: 50_000, shards: []int{2, 8},
}

// fakeOthers stands for the libraries, which other modules link.
func fakeOthers() []Figure {
	return []Figure{{Group: "Powertools", Name: "Powertools for Python", Kind: newCalls, N: 1, Values: map[string]Stat{"rate": {1, 2, 3}, "ratio": {.1, .2, .3}, "client": {5, 6, 7}}}}
}

func TestSections_TinySizes_PagesAreComplete(t *testing.T) {
	opt := tiny
	opt.postgres = pgtest.Start(t, pgtest.Fast...)
	_, err := redistest.Bin()
	proctest.Need(t, err, redistest.ErrNotInstalled)
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	folder := filepath.Join(out, "benchmarks")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		if s.name == "others" {
			continue
		}
		r, err := s.run(t.Context(), root, opt, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := r.write(filepath.Join(folder, s.name+".jsonl")); err != nil {
			t.Fatal(err)
		}
	}
	if err := writePages(folder, out); err == nil || !strings.Contains(err.Error(), "all of section others") {
		t.Errorf("without the section others the pages give %v", err)
	}
	others := results{header: header{Date: "2026-11-28 01:02", Commit: "abc"}, figures: fakeOthers()}
	if err := others.write(filepath.Join(folder, "others.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := writePages(folder, out); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(r.of("stores", "", "", "", 0), r.of("doors", "", "", "", 0)...) {
		if len(f.Name) > longestLabel {
			t.Errorf("%q has more than %d letters, which is all that a chart has place for", f.Name, longestLabel)
		}
	}
	page, err := os.ReadFile(filepath.Join(out, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(slices.Clone(storeGroups), doorGroups...) {
		if text := string(page); !strings.Contains(text, "### "+g.name+"\n\n"+about[g.name]) || about[g.name] == "" {
			t.Errorf("the page does not say what %q is", g.name)
		}
	}
}
