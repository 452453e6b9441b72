package dynamostore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// openAWS is a store on a table of AWS itself, with a prefix of its own. It needs
// SEMEL_TEST_AWS_TABLE, a table that migrate has made, AWS_REGION and the credentials
// in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
func openAWS(t *testing.T) *Store {
	table := os.Getenv("SEMEL_TEST_AWS_TABLE")
	if table == "" {
		t.Skip("SKIPPED, NOT TESTED: SEMEL_TEST_AWS_TABLE is not set, so nothing runs on AWS itself")
	}
	client := dynamodb.New(dynamodb.Options{
		Region: os.Getenv("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
			}, nil
		}),
	}, func(o *dynamodb.Options) {
		if url := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); url != "" {
			o.BaseEndpoint = &url
		}
	})
	o := newOwner()
	return openOn(t, client, table, &Options{Prefix: fmt.Sprintf("test-%x#", o[:4]), IndexShards: 1})
}

// What only AWS itself can show: that it behaves as the emulator does.
func TestAWS_CallsRacesAndTransactions_AsOnEmulator(t *testing.T) {
	t.Parallel()
	s := openAWS(t)
	for round := range 20 {
		var won [64]store.Found
		var errs [64]error
		var all sync.WaitGroup
		for i := range won {
			all.Go(func() { won[i], errs[i] = s.Claim(t.Context(), proposal(fmt.Sprint("race ", round))) })
		}
		all.Wait()
		n := 0
		for i := range won {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if won[i].Won {
				n++
			}
		}
		if n != 1 {
			t.Errorf("round %d: %d of 64 callers won, want 1", round, n)
		}
	}
	r := complete(t, s, "k", "answer")
	if f, err := s.Claim(t.Context(), proposal("k")); err != nil || f.Won || !f.Record.Outcome.Equal(r.Outcome) {
		t.Errorf("a replay: won %v, error %v, outcome %+v", f.Won, err, f.Record.Outcome)
	}
	a := atomicOf(t, s)
	for range 2 {
		err := Once(t.Context(), a, testCall("atomic"), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(s.count("atomic")) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := s.counted(t, "atomic"); n != 1 {
		t.Errorf("the effect happened %d times, want 1", n)
	}
	filter, listed := store.Filter{States: []store.State{store.Processing}}, 0
	for start := time.Now(); listed != 20 && time.Since(start) < time.Minute; sleep(t.Context(), time.Second) { // the index may be behind
		listed = 0
		for _, err := range s.List(t.Context(), filter) {
			if err != nil {
				t.Fatal(err)
			}
			listed++
		}
	}
	if listed != 20 {
		t.Errorf("the index has %d of 20 records in flight", listed)
	}
}
