package sqstest

import (
	"context"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/semel-go/semel/internal/proctest"
)

// shared is the server of all tests of a process.
var shared proctest.Shared[*Server]

// Main runs the tests of a package, and then removes the server that [URL] may have
// made. Call it in TestMain: os.Exit(sqstest.Main(m)).
func Main(m interface{ Run() int }) int { return proctest.Main(m, &shared) }

// URL is the endpoint of a server for the tests of this process: SEMEL_TEST_SQS_URL if
// it is set, and otherwise a private server. Tests share it, so each uses queues of its
// own. URL skips the test if the server cannot be had.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_SQS_URL"); url != "" {
		return url
	}
	s, err := shared.Get(New)
	proctest.Need(t, err, ErrNotInstalled)
	return s.URL()
}

// Client makes a client of an endpoint, with credentials that an emulator takes.
func Client(url string, options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &url, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}, options...)
}
