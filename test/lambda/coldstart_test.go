//go:build unix

package lambda

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/dynamostore"
)

// initialized is a line of GODEBUG=inittrace=1.
var initialized = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, (\S+) ms clock`)

// What Semel adds to the start of a function: the initialization of its packages and of
// those of the client of DynamoDB, and the making of the store, the Guard and the
// wrapper. All of it happens without a request. The least of some processes counts,
// because the machine may do other things.
func TestColdStart_Figures(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("measures; SEMEL_TEST_COMPARE=1 runs it")
	}
	var ours, client, making []float64
	for range 40 {
		cmd := proctest.Self(t, functionVar+"=cold", "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, trace.Bytes())
		}
		made, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			t.Fatal(err)
		}
		var semels, clients float64
		for _, line := range initialized.FindAllStringSubmatch(trace.String(), -1) {
			millis, err := strconv.ParseFloat(line[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasPrefix(line[1], "github.com/semel-go/semel"):
				semels += millis
			case strings.HasPrefix(line[1], "github.com/aws/"):
				clients += millis
			}
		}
		if clients == 0 {
			t.Fatalf("no package of AWS was initialized: %s", trace.Bytes())
		}
		ours, client, making = append(ours, semels), append(client, clients), append(making, made)
	}
	t.Logf("packages of Semel %.3f ms, packages of AWS %.3f ms, store, Guard and wrapper %.3f ms", least(ours), least(client), least(making))
	if sum := least(ours) + least(client) + least(making); sum > 30 {
		t.Errorf("Semel adds %.1f ms to a cold start, at most 30", sum)
	}
}

func least(values []float64) float64 {
	low := values[0]
	for _, v := range values {
		low = min(low, v)
	}
	return low
}

// coldStart makes what a function needs, and prints the milliseconds that it took.
func coldStart() error {
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1", Credentials: aws.AnonymousCredentials{}})
	began := time.Now()
	st, err := dynamostore.New(client, "semel", nil)
	if err != nil {
		return err
	}
	guard, err := semel.New(st, nil)
	if err != nil {
		return err
	}
	o := semellambda.Options[payment]{Operation: "pay", Tenant: semellambda.Shared[payment], KeyPointers: []string{"/id"}}
	_, err = semellambda.Wrap(guard, o, func(context.Context, payment) (string, error) { return "", nil })
	fmt.Println(float64(time.Since(began).Microseconds()) / 1000)
	return err
}
