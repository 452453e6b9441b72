package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCampaign_SagaDemo_PromisesHold(t *testing.T) {
	var r SagaReport
	code, told := into(t, &r, "--saga")
	if code != 0 || len(r.Broken) != 0 || len(r.Blind) != 0 {
		t.Fatalf("exit code %d, broken %q, blind %q; told: %s", code, r.Broken, r.Blind, told)
	}
	s, u := r.With, r.Without
	if r.Orders != 300 || u.Kills != 8 || s.Kills != 8 || u.InFlightAtKills < 8 || s.InFlightAtKills < 8 {
		t.Errorf("%d orders, %d and %d kills with %d and %d in flight", r.Orders, u.Kills, s.Kills, u.InFlightAtKills, s.InFlightAtKills)
	}
	if u.ExcessCents <= 0 || u.Wrong == 0 || s.ExcessCents != 0 || s.MissingPieces != 0 || s.Wrong != 0 || s.Booked+s.Refused+s.Undone != 300 {
		t.Errorf("without Semel %+v\nwith Semel %+v", u, s)
	}
	if u.Samples == 0 || s.Samples == 0 || u.P50 <= 0 || s.P50 <= 0 || u.P99 < u.P50 || s.P99 < s.P50 {
		t.Errorf("latencies %+v and %+v", u.Course, s.Course)
	}
}

func TestCampaign_SagaDemoUnprotected_SeesMistakes(t *testing.T) {
	var r SagaReport
	code, told := into(t, &r, "--saga", "--fresh-keys", "--orders=100")
	if code != 1 || len(r.Broken) == 0 || r.With.Wrong == 0 || !strings.Contains(told, "found a broken guarantee: with Semel: ") {
		t.Errorf("exit code %d, broken %q; told: %s", code, r.Broken, told)
	}
}

func TestCampaign_SagaDemoWithoutKills_ShowsNothing(t *testing.T) {
	var r SagaReport
	code, told := into(t, &r, "--saga", "--kills=0", "--orders=50")
	blind := slices.ContainsFunc(r.Blind, func(s string) bool { return strings.HasPrefix(s, "no worker was killed") })
	if code != 1 || !blind || len(r.Broken) != 0 || !strings.Contains(told, "shows nothing") {
		t.Errorf("exit code %d, broken %q, blind %q; told: %s", code, r.Broken, r.Blind, told)
	}
}
