package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// The operator's commands on a table in DynamoDB.
func TestCommands_DynamoDB_WorkOnTable(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	text := "dynamodb://cli?region=us-east-1&index-shards=1&max-skew=1ms&endpoint=" + url.QueryEscape(dynamotest.Start(t).URL())
	if r := command(t, "inspect", "list", "--store", text); r.code != program.ExitFailed || !strings.Contains(r.stderr, "semel migrate") {
		t.Errorf("without a table: %+v", r)
	}
	if r := command(t, "copy", "--from", filled(t, store.Completed), "--to", text, "--dry-run"); r.code != program.ExitOK || !strings.Contains(r.stdout, "would copy 1,") || !strings.Contains(r.stderr, "does not exist yet") {
		t.Errorf("a dry run without a table: %+v", r)
	}
	for range 2 {
		if r := command(t, "migrate", "--store", text); r.code != program.ExitOK || !strings.Contains(r.stdout, "up to date") {
			t.Fatalf("migrate: %+v", r)
		}
	}
	u, err := storeurl.Parse(text, "--store")
	if err != nil {
		t.Fatal(err)
	}
	st, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, policy := range []store.Policy{store.Retry, store.Park} {
		p := store.Proposal{
			Key: store.Key{Operation: "http", Tenant: "ann", Value: policy.String()}, State: store.Processing, Policy: policy,
			Owner: store.Owner{byte(i + 1)}, Attempt: 1, Lease: time.Millisecond,
		}
		if f, err := st.Claim(context.Background(), p); err != nil || !f.Won {
			t.Fatalf("claim: won %v, error %v", f.Won, err)
		}
	}
	total := swept{}
	eventuallyOK(t, func() bool { // until the claims have lapsed
		var s swept
		r := command(t, "sweep", "--once", "--store", text, "--json")
		if r.code != program.ExitOK || json.Unmarshal([]byte(r.stdout), &s) != nil {
			t.Fatalf("sweep: %+v", r)
		}
		total.Released, total.Parked = total.Released+s.Released, total.Parked+s.Parked
		return total.Released == 1 && total.Parked == 1
	})
	if r := command(t, "inspect", "list", "--store", text); r.code != program.ExitOK || !strings.Contains(r.stdout, "park") {
		t.Errorf("inspect list: %+v", r)
	}
	// The emulator has no point-in-time recovery, and migrate leaves it off.
	if r := command(t, "doctor", "--store", text); r.code != program.ExitFailed || !strings.Contains(r.stderr, "point-in-time recovery is off") || strings.Contains(r.stderr, "time to live is not on") {
		t.Errorf("doctor: %+v", r)
	}
}
