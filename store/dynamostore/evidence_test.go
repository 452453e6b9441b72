package dynamostore

import (
	"encoding/json"
	"os"
	"testing"
)

// figure is what the evidence command collects.
func figure(t *testing.T, claim string, control bool, trials, failures int64, detail string) {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"claim": claim, "where": "DynamoDB (ministack)", "trials": trials, "failures": failures, "control": control, "detail": detail,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", b)
}

// long reports whether SEMEL_EVIDENCE=1 asks for the long form of campaigns.
func long() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }

// histories is how many random histories are compared with the memory store.
func histories() int {
	if long() {
		return 2000
	}
	return 12
}
