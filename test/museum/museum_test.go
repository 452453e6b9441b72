package museum

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/repo"
)

// missed are the mutants that were not caught. TestMain names them in the last
// lines, which a log that is cut short in its middle keeps.
var missed []string

func TestMain(m *testing.M) {
	code := m.Run()
	for _, v := range missed {
		fmt.Fprintln(os.Stderr, "NOT CAUGHT:", v)
	}
	os.Exit(code)
}

// slotCount is how many runs of tests there are at a time. Most tests wait for
// servers and clocks, so there are more than a small machine has processors. With six, the
// tests that run beside the museum in CI got so little processor time that servers did not
// answer them.
const slotCount = 4

// TestMuseum requires that its tests catch each mutant, or each that -run names.
func TestMuseum(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := All()
	verdicts := map[*Mutant]chan verdict{}
	var chosen []*Mutant
	for i := range all {
		m := &all[i]
		verdicts[m] = make(chan verdict, 1)
		if isChosen(t, m) {
			chosen = append(chosen, m)
		}
	}
	var own servers
	slots, err := own.slots(slotCount)
	t.Cleanup(func() {
		if err := own.close(); err != nil {
			t.Errorf("end the servers: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	judged := make(chan error, 1)
	go func() {
		err := newJury(root, t.TempDir(), slots).judge(ctx, chosen, func(m *Mutant, v verdict) { verdicts[m] <- v })
		cancel() // no verdict comes any more
		judged <- err
	}()
	rows := map[*Mutant]verdict{}
	for _, m := range chosen {
		t.Run(m.Name, func(t *testing.T) {
			var v verdict
			select {
			case v = <-verdicts[m]:
			case <-ctx.Done():
				select {
				case v = <-verdicts[m]:
				default:
					v = notCaught("NOT JUDGED")
				}
			}
			rows[m] = v
			if !v.caught {
				missed = append(missed, fmt.Sprintf("%s, in %s: %s", m.Name, m.place(), v.text))
				t.Errorf("%s: %s", m.place(), v.text)
			}
		})
	}
	if err := <-judged; err != nil {
		t.Error(err)
	}
	t.Log(table(chosen, rows))
	figure.Report(t, figure.Figure{Claim: "a seeded bug is caught by the tests", Trials: int64(len(chosen)), Failures: int64(len(missed))})
}

// isChosen reports whether the flag -run selects the test of the mutant.
func isChosen(t *testing.T, m *Mutant) bool {
	t.Helper()
	s, err := newSelector(flag.Lookup("test.run").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	return s.picks(t.Name() + "/" + strings.ReplaceAll(m.Name, " ", "_"))
}

// table lists the verdict of each mutant.
func table(mutants []*Mutant, rows map[*Mutant]verdict) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintf(w, "\n mutant\t rule\t parent\t caught by\n")
	for _, m := range mutants {
		text, _, _ := strings.Cut(rows[m].text, "\n")
		fmt.Fprintf(w, " %s\t %s\t %s\t %s\n", m.Name, m.Rule, m.Parent, text)
	}
	_ = w.Flush()
	return fmt.Sprintf("%s %d mutants\n", b.String(), len(mutants))
}
