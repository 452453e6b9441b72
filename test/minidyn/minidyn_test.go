package minidyn

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// The faults of minidyn because of which tests fail. TestMinidyn_Faults_AreThere shows
// each.
const (
	removes = "REMOVE leaves the attribute"
	scans   = "a Scan that goes on after an item that was deleted finds nothing"
	indexes = "an index loses entries when UpdateItem makes an item"
)

// unable are the tests that fail on minidyn, and the fault because of which they do.
var unable = map[string]string{
	"TestConformance/record/all_fields_come_back_from_a_swap":                            removes,
	"TestConformance/record/a_change_by_one_handle_is_read_by_the_other_at_once":         removes,
	"TestConformance/swap/replaces_the_record_that_was_seen,_from_each_state_to_each":    removes,
	"TestConformance/settle/ends_a_claim_in_each_final_state":                            removes,
	"TestConformance/expiry/records_without_an_end_have_no_Expires":                      removes,
	"TestConformance/sweep/deletes_expired_records_among_many_lapsed_ones":               scans,
	"TestConformance/sweep/keeps_the_limit,_and_ends_in_a_store_with_more_records":       scans,
	"TestConformance/sweep/two_concurrent_sweeps_delete_each_record_once":                scans,
	"TestConformance/fence/grows_with_a_claim_after_a_sweep_when_the_clock_was_set_back": scans,
	"TestConformance/erase/never_erases_a_record_that_has_changed_since_it_was_seen":     removes,
	"TestConformance/timers/a_timer_is_due_after_its_wait,_and_not_before":               indexes,
	"TestConformance/timers/a_timer_does_not_change_with_its_record":                     indexes,
	"TestConformance/timers/the_earliest_come_first,_and_no_more_than_the_limit":         indexes,
	"TestConformance/timers/operations,_tenants_and_keys_do_not_share_timers":            indexes,
}

const (
	// chosen are the suite that every store passes, races, and requests that are lost,
	// late and doubled. The others need what minidyn does not have: the time to live,
	// the limit of 400 KB, units, S3, old values of a refused write.
	chosen = "^(TestConformance$|TestClaim_64|TestGuard_|TestAtomic_|TestSettle_(By|Item)|TestChange_|TestRenew_|TestSweep_|TestFence_|TestExpiry_)"
	// The histories have REMOVE in them, and lists take minidyn much processor time.
	leftOut = "^TestConformance$/^(histories|list)$"
)

var ended = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): (\S+)`)

func TestDynamoStore_OnMinidyn_AllButNamedTestsPass(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-short", "-vet=off", "-v", "-run", chosen, "-skip", leftOut, ".")
	cmd.Dir = filepath.Join(root, "store", "dynamostore")
	cmd.Env = append(os.Environ(), "SEMEL_TEST_DYNAMODB_URL="+start(t))
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	names, failed := map[string]bool{}, []string{}
	for _, line := range ended.FindAllStringSubmatch(string(out), -1) {
		names[line[2]] = line[1] == "PASS"
	}
	for name, ok := range names {
		isParent := false
		for other := range names {
			isParent = isParent || strings.HasPrefix(other, name+"/")
		}
		if !ok && !isParent {
			failed = append(failed, name)
		}
	}
	if want := slices.Sorted(maps.Keys(unable)); !slices.Equal(slices.Sorted(slices.Values(failed)), want) {
		t.Errorf("these tests failed:\n%s\nwant these:\n%s\n%s", strings.Join(failed, "\n"), strings.Join(want, "\n"), out)
	}
	if !names["TestClaim_64CallersRace_OneWinsEachRound"] || !names["TestConformance/settle/one_of_many_concurrent_settlements_wins"] {
		t.Errorf("the races did not run:\n%s", out)
	}
	t.Logf("%d tests and groups of tests, of which %d failed as expected", len(names), len(failed))
}
