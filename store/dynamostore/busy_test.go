package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// A Guard with UnprotectedOnOutage must not run its handler because duplicates of a hot key
// are throttled, also if its time ends while the client pauses. Without an answer it runs.
func TestUnprotected_KeyThrottled_DoesNotRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code     string // of the server's refusal; empty: no answer
		attempts int
		runs     int
	}{
		"throttled":            {"ThrottlingException", 1, 0},
		"throttled in a pause": {"ThrottlingException", 1000, 0},
		"conflict in a pause":  {"TransactionConflictException", 1000, 0},
		"no answer":            {"", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openOn(t, dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) {
				o.RetryMaxAttempts = c.attempts
				o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
					if c.code == "" {
						return nil, errNetwork
					}
					body := errorBody(c.code, "")
					return &http.Response{
						StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: req,
						Body: readCloser{strings.NewReader(body)}, ContentLength: int64(len(body)),
					}, nil
				})
			}), "t", nil)
			g, err := semel.New(s, &semel.Options{UnprotectedOnOutage: true, StoreTimeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			_, err = g.Run(t.Context(), semel.Call{Operation: "op", Tenant: "t", Key: "k", Payload: semel.NoPayload()},
				func(context.Context, *semel.Execution) (store.Outcome, error) {
					runs++
					return store.Outcome{}, nil
				})
			if runs != c.runs {
				t.Errorf("%d runs, want %d", runs, c.runs)
			}
			if c.code != "" && (!errors.Is(err, semel.ErrUnavailable) || errors.Is(err, ErrThrottled) != (c.code == "ThrottlingException") || !errors.Is(err, store.ErrBusy)) {
				t.Errorf("error %v, want ErrUnavailable around ErrBusy, which is ErrThrottled if the key was throttled", err)
			}
		})
	}
}
