package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// The server takes a request and does not answer. The caller has no deadline.
func TestAtomic_ServerHangs_EndsAtStoreTimeout(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]error{"GetItem": semel.ErrUnavailable, "TransactWriteItems": semel.ErrInDoubt} {
		var hangs atomic.Bool
		client := dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) {
			o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
				if hangs.Load() && req.Header.Get("X-Amz-Target") == "DynamoDB_20120810."+operation {
					<-req.Context().Done()
					return nil, context.Cause(req.Context())
				}
				return http.DefaultClient.Do(req)
			})
		})
		s := openOn(t, client, openNew(t, nil).table, nil)
		a, err := NewAtomic(s, &semel.Options{StoreTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		hangs.Store(true)
		_, err = a.Run(context.Background(), testCall("k"), func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil })
		if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, want) {
			t.Errorf("%s hangs: %v, want %v", operation, err, want)
		}
	}
}
