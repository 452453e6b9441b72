package latency

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// openDynamo opens a store whose server answers each request after 5 ms.
func openDynamo(t *testing.T) store.Store {
	server := httptest.NewServer(&dynamo{items: map[string]map[string]json.RawMessage{}})
	t.Cleanup(server.Close)
	st, err := dynamostore.New(dynamotest.Client(server.URL), "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// dynamo is a stub of DynamoDB for calls without rivals: a claim inserts an item, or is
// refused with the item that is there, and a settlement is not compared.
type dynamo struct {
	mu    sync.Mutex
	items map[string]map[string]json.RawMessage // by their keys
}

// request has the fields of PutItem and UpdateItem.
type request struct {
	Item, Key, ExpressionAttributeValues map[string]json.RawMessage
	ExpressionAttributeNames             map[string]string
	UpdateExpression                     string
}

// ServeHTTP implements http.Handler.
func (d *dynamo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	err := json.NewDecoder(r.Body).Decode(&in)
	<-time.After(5 * time.Millisecond)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	var refusal []byte
	if err == nil {
		refusal, err = d.carryOut(&in)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case refusal != nil:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(refusal)
	default:
		_, _ = w.Write([]byte("{}"))
	}
}

// carryOut makes the change, or returns the refusal.
func (d *dynamo) carryOut(in *request) (refusal []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in.Item != nil {
		key := string(in.Item["pk"])
		if was := d.items[key]; was != nil {
			return json.Marshal(map[string]any{"__type": "ConditionalCheckFailedException", "message": "The conditional request failed", "Item": was})
		}
		d.items[key] = in.Item
		return nil, nil
	}
	it := d.items[string(in.Key["pk"])]
	if it == nil {
		return nil, fmt.Errorf("no item %s", in.Key["pk"])
	}
	set, remove, _ := strings.Cut(in.UpdateExpression, " REMOVE ")
	for assignment := range strings.SplitSeq(strings.TrimPrefix(set, "SET "), ", ") {
		name, value, _ := strings.Cut(assignment, " = ")
		it[in.ExpressionAttributeNames[name]] = in.ExpressionAttributeValues[value]
	}
	for name := range strings.SplitSeq(remove, ", ") {
		delete(it, in.ExpressionAttributeNames[name])
	}
	return nil, nil
}
