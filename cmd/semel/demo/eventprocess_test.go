package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCampaign_EventDemo_PromisesHold(t *testing.T) {
	r, code, told := result(t, "--events")
	if code != 0 || len(r.Broken) != 0 {
		t.Fatalf("exit code %d, broken %q; told: %s", code, r.Broken, told)
	}
	s, u := r.With, r.Without
	if r.Orders != 200 || r.Deliveries < 300 || r.Changes != 4 || s.Sent != r.Deliveries || u.Sent != r.Deliveries {
		t.Errorf("%d orders, %d deliveries, %d changes, sent %d and %d", r.Orders, r.Deliveries, r.Changes, u.Sent, s.Sent)
	}
	if u.DoubleCharges == 0 || u.Lost == 0 || u.ConsumerKills != 8 || u.Kills != 8 || u.InFlightAtKills < 8 {
		t.Errorf("without Semel: %+v", u)
	}
	if s.DoubleCharges != 0 || s.Lost != 0 || s.UnequalReplays != 0 || s.Stuck != 0 || s.Charges != 200 {
		t.Errorf("with Semel: %+v", s)
	}
	if s.ConsumerKills != 8 || s.Kills != 8 || s.InFlightAtKills < 8 || s.Replays == 0 || s.Refused != 4 || s.Executions < 200 {
		t.Errorf("with Semel: %+v", s)
	}
	if u.Samples == 0 || s.Samples == 0 || u.P50 <= 0 || s.P50 <= 0 || u.P99 < u.P50 || s.P99 < s.P50 {
		t.Errorf("latencies %+v and %+v", u, s)
	}
}

// If the demo could not see a double charge, its zero would mean nothing.
func TestCampaign_EventDemoUnprotected_SeesDoubleCharges(t *testing.T) {
	r, code, told := result(t, "--events", "--broker-keys")
	if code != 1 || r.With.DoubleCharges == 0 || len(r.Broken) == 0 || !strings.Contains(told, "double charges") {
		t.Errorf("exit code %d, %d double charges, broken %q; told: %s", code, r.With.DoubleCharges, r.Broken, told)
	}
}

func TestCampaign_EventDemoWithoutKills_ProvesNothing(t *testing.T) {
	r, code, _ := result(t, "--events", "--kills=0")
	blind := slices.ContainsFunc(r.Broken, func(s string) bool { return strings.Contains(s, "not every kind of process was killed") })
	if code != 1 || !blind || r.With.DoubleCharges+r.With.Lost+r.With.Stuck != 0 {
		t.Errorf("exit code %d, broken %q", code, r.Broken)
	}
}
