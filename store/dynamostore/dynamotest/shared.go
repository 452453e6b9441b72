package dynamotest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/internal/proctest"
)

// shared is the server of all tests of a process.
var shared proctest.Shared[*Server]

// Main runs the tests of a package, and then removes the server that [URL] may have
// made. Call it in TestMain: os.Exit(dynamotest.Main(m)).
func Main(m interface{ Run() int }) int { return proctest.Main(m, &shared) }

// URL is the endpoint of a server for the tests of this process:
// SEMEL_TEST_DYNAMODB_URL if it is set, and otherwise a private server. Tests share
// it, so each uses a table of its own. URL skips the test if there is no program.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_DYNAMODB_URL"); url != "" {
		return url
	}
	s, err := shared.Get(New)
	proctest.Need(t, err, ErrNotInstalled)
	return s.URL()
}

// Start makes a server that only t uses, and removes it when t ends. It skips the
// test if there is no program.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	proctest.Need(t, err, ErrNotInstalled)
	proctest.RemoveAtEnd(t, s)
	return s
}

// connections are those of all clients of the process. The emulator closes a
// connection that is idle for 5 s, and a request may be under way by then, so the
// client closes it before.
var connections = &http.Client{Transport: wholeReplies{&http.Transport{MaxIdleConnsPerHost: 128, IdleConnTimeout: 2 * time.Second}}}

// wholeReplies reads each reply whole before the SDK sees it. Without that the SDK,
// under the race detector and load, sends some requests to the emulator again although
// they were answered, and a sweep then counts fewer deletions than it made.
type wholeReplies struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w wholeReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	reply, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		return nil, err
	}
	reply.Body = io.NopCloser(bytes.NewReader(body))
	return reply, nil
}

// Client makes a client of an endpoint, with credentials that an emulator takes.
func Client(url string, options ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: connections,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}, options...)
}
