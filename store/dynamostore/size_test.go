package dynamostore

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// noise is bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func TestSettle_LargeOutcome_CompressedOrRefused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for name, c := range map[string]struct {
		body []byte
		fits bool
	}{
		"5 MB that compress":          {bytes.Repeat([]byte("semel "), 800_000), true},
		"350 KB that do not":          {noise(350_000), true},
		"395 KB that do not":          {noise(395_000), false},
		"1 MB that does not":          {noise(1_000_000), false},
		"65 MB that would compress":   {make([]byte, 65<<20), false},
		"383 KB, which the row fills": {noise(389_000), false},
	} {
		r := claim(t, s, name)
		p := completion("")
		p.Outcome.Body = c.body
		if !c.fits && len(c.body) == 389_000 { // the outcome alone would fit
			step := store.Step{Name: "s", Outcome: store.Outcome{Body: noise(30_000)}}
			if err := s.RecordStep(t.Context(), r.Lease(), step); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Settle(t.Context(), r.Lease(), p)
		if c.fits {
			if got := get(t, s, name); err != nil || !bytes.Equal(got.Outcome.Body, c.body) {
				t.Errorf("%s: error %v, %d bytes come back", name, err, len(got.Outcome.Body))
			}
			continue
		}
		if !errors.Is(err, store.ErrTooLarge) || store.Affects(err) != store.ExtentCall {
			t.Errorf("%s: error %v, want ErrTooLarge", name, err)
		}
		if got := get(t, s, name); got.State != store.Processing {
			t.Errorf("%s: a refused settlement left the record %v", name, got.State)
		}
		p.Outcome.Body, p.Outcome.Gone = nil, true
		if err := s.Settle(t.Context(), r.Lease(), p); err != nil {
			t.Errorf("%s: the tombstone: %v", name, err)
		}
	}
}

func TestRecordStep_ItemFull_RefusedAndTombstoneFits(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	var err error
	n := 0
	for ; n < 10 && err == nil; n++ {
		err = s.RecordStep(t.Context(), r.Lease(), store.Step{Name: fmt.Sprint("step ", n), Outcome: store.Outcome{Body: noise(60_000)}})
	}
	if !errors.Is(err, store.ErrTooLarge) || n != 5 {
		t.Fatalf("step %d of 60 KB: error %v, want ErrTooLarge at the 5th", n, err)
	}
	if err := s.RecordStep(t.Context(), r.Lease(), store.Step{Name: "gone", Outcome: store.Outcome{Gone: true}}); err != nil {
		t.Errorf("a step's tombstone: %v", err)
	}
	steps, err := s.Steps(t.Context(), r.Lease())
	if err != nil || len(steps) != 5 || steps[4].Name != "gone" || len(steps[3].Outcome.Body) != 60_000 {
		t.Errorf("%d steps, error %v; want 5", len(steps), err)
	}
	if err := s.Settle(t.Context(), r.Lease(), completion("small")); err != nil {
		t.Errorf("the settlement of a call with many steps: %v", err)
	}
}

// The tombstone of a step may take more than the other steps may.
func TestAddSteps_TombstoneBeyondOthersLimit_Fits(t *testing.T) {
	steps := []store.Step{
		{Name: "large", Outcome: store.Outcome{Body: noise(maxStepBytes - 100)}},
		{Name: strings.Repeat("t", 200), Outcome: store.Outcome{Gone: true}},
	}
	if err := addSteps(item{}, steps); err != nil {
		t.Errorf("with a tombstone: %v", err)
	}
	steps[1].Outcome.Gone = false
	if err := addSteps(item{}, steps); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("without a tombstone: %v, want ErrTooLarge", err)
	}
}
