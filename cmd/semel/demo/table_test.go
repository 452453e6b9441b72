package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has changed (-update writes it):\n%s", path, got)
	}
}

func TestTable_Results_MatchGoldenFile(t *testing.T) {
	for name, r := range map[string]report{"table.txt": shown(), "events.txt": shownEvents(), "saga.txt": shownSaga()} {
		if err := r.judge(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := writeTable(&b, r.rows(), r.summary()); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestTable_BrokenPromise_IsNamed(t *testing.T) {
	r := shown()
	r.With.DoubleCharges, r.With.Stuck = 3, 1
	if r.judge() == nil {
		t.Fatal("nothing is broken")
	}
	var b bytes.Buffer
	if err := writeTable(&b, r.rows(), r.summary()); err != nil {
		t.Fatal(err)
	}
	golden(t, "broken.txt", b.Bytes())
}
