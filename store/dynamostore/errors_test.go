package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// answering is a client whose server gives one answer to every request.
func answering(status int, body string) *dynamodb.Client {
	return dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 1
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			if status == 0 {
				return nil, errNetwork
			}
			return &http.Response{
				StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: req,
				Body: readCloser{strings.NewReader(body)}, ContentLength: int64(len(body)),
			}, nil
		})
	})
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func errorBody(code, message string) string {
	return fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code, message)
}

func TestError_EachCode_HasItsMeaning(t *testing.T) {
	t.Parallel()
	anyError := errors.New("any")
	for _, c := range []struct {
		status        int
		code, message string
		is            error
		extent        store.Extent
	}{
		{400, "ProvisionedThroughputExceededException", "", ErrThrottled, store.ExtentPart},
		{400, "ThrottlingException", "", ErrThrottled, store.ExtentPart},
		{400, "RequestLimitExceeded", "", ErrThrottled, store.ExtentStore},
		{400, "TransactionConflictException", "", ErrConflict, store.ExtentCall},
		{400, "TransactionInProgressException", "", ErrConflict, store.ExtentCall},
		{400, "ReplicatedWriteConflictException", "", ErrConflict, store.ExtentCall},
		{400, "ResourceNotFoundException", "", ErrNoTable, store.ExtentStore},
		{400, "AccessDeniedException", "", ErrDenied, store.ExtentStore},
		{400, "UnrecognizedClientException", "", ErrDenied, store.ExtentStore},
		{400, "ExpiredTokenException", "", ErrDenied, store.ExtentStore},
		{400, "ValidationException", "Item size to update has exceeded the maximum allowed size", store.ErrTooLarge, store.ExtentCall},
		{400, "ValidationException", "The provided key element does not match the schema", anyError, store.ExtentStore},
		{500, "InternalServerError", "", anyError, store.ExtentPart},
		{503, "ServiceUnavailable", "", anyError, store.ExtentStore},
		{400, "SomethingNewException", "", anyError, store.ExtentStore},
		{0, "", "", errNetwork, store.ExtentStore},
	} {
		s := openOn(t, answering(c.status, errorBody(c.code, c.message)), "t", nil)
		for method, err := range map[string]error{
			"claim":  second(s.Claim(t.Context(), proposal("k"))),
			"swap":   second(s.Swap(t.Context(), store.Seen{Key: testKey("k")}, proposal("k"))),
			"settle": s.Settle(t.Context(), store.Lease{Key: testKey("k")}, completion("x")),
			"get":    second(s.Get(t.Context(), testKey("k"))),
			"sweep":  second(s.Sweep(t.Context(), "", 1)),
		} {
			if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("%s, %q: error %v, want one that is no answer", method, c.code, err)
				continue
			}
			if c.is != anyError && !errors.Is(err, c.is) {
				t.Errorf("%s, %q: error %v, want %v", method, c.code, err, c.is)
			}
			if got := store.Affects(err); got != c.extent {
				t.Errorf("%s, %q %s: concerns %v, want %v", method, c.code, c.message, got, c.extent)
			}
			if !strings.Contains(err.Error(), "table t") {
				t.Errorf("%s: the error %q does not name the table", method, err)
			}
		}
	}
}

func TestError_ContextEnded_IsTheContexts(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Claim(ctx, proposal("k")); !errors.Is(err, context.Canceled) {
		t.Errorf("Claim: %v, want context.Canceled", err)
	}
	if _, err := s.Get(t.Context(), testKey("k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the claim of a cancelled call is there: %v", err)
	}
}

func TestError_NoTable_SaysMigrate(t *testing.T) {
	t.Parallel()
	s := openOn(t, dynamotest.Client(dynamotest.URL(t)), newTable(), nil)
	_, err := s.Claim(t.Context(), proposal("k"))
	if !errors.Is(err, ErrNoTable) || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("Claim: %v, want ErrNoTable", err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, ErrNoTable) {
		t.Errorf("Check: %v, want ErrNoTable", err)
	}
}

func TestNew_WrongArguments_AreNamed(t *testing.T) {
	t.Parallel()
	c := dynamodb.New(dynamodb.Options{Region: "r", Credentials: aws.AnonymousCredentials{}})
	for want, o := range map[string]*Options{
		"PartitionKey": {PartitionKey: attrOwner}, "SortKey": {SortKey: attrDue}, "TTL": {TTL: attrExpires}, `SortKey is "pk"`: {SortKey: "pk"},
		"Prefix": {Prefix: strings.Repeat("x", 101)}, `"timer:x"`: {Prefix: "timer:x"}, "IndexShards": {IndexShards: -1}, "MaxSkew": {MaxSkew: -1},
	} {
		if _, err := New(c, "t", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that names %s", o, err, want)
		}
	}
	if _, err := New(nil, "t", nil); err == nil {
		t.Error("a nil client is no error")
	}
	if _, err := New(c, "", nil); err == nil {
		t.Error("an empty table name is no error")
	}
}

func second[T any](_ T, err error) error { return err }
