package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// dynamoDelay is how long the stub of DynamoDB waits before it answers.
const dynamoDelay = 5 * time.Millisecond

type attributes = map[string]json.RawMessage

// dynamo is a stub of DynamoDB for calls without rivals: a claim inserts an item, or is
// refused with the item that is there, and an update is not compared.
type dynamo struct {
	mu    sync.Mutex
	items map[string]attributes // by their partition keys
}

func newDynamo() *dynamo { return &dynamo{items: map[string]attributes{}} }

// dynamoRequest has the fields of GetItem, PutItem and UpdateItem.
type dynamoRequest struct {
	Item, Key, ExpressionAttributeValues attributes
	ExpressionAttributeNames             map[string]string
	UpdateExpression                     string
}

// ServeHTTP implements http.Handler. GET /bytes answers with the size of all items.
func (d *dynamo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/bytes" {
		_, _ = fmt.Fprint(w, d.bytes())
		return
	}
	var in dynamoRequest
	err := json.NewDecoder(r.Body).Decode(&in)
	<-time.After(dynamoDelay)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	reply, refused := []byte("{}"), false
	if err == nil {
		reply, refused, err = d.carryOut(strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810."), &in)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case refused:
		w.WriteHeader(http.StatusBadRequest)
		fallthrough
	default:
		_, _ = w.Write(reply)
	}
}

// carryOut makes a change, or returns an item or a refusal.
func (d *dynamo) carryOut(action string, in *dynamoRequest) (reply []byte, refused bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch action {
	case "GetItem":
		it := d.items[string(in.Key["pk"])]
		if it == nil {
			return []byte("{}"), false, nil
		}
		reply, err = json.Marshal(map[string]any{"Item": it})
		return reply, false, err
	case "PutItem":
		key := string(in.Item["pk"])
		if was := d.items[key]; was != nil {
			reply, err = json.Marshal(map[string]any{"__type": "ConditionalCheckFailedException", "message": "The conditional request failed", "Item": was})
			return reply, true, err
		}
		d.items[key] = in.Item
		return []byte("{}"), false, nil
	case "UpdateItem":
		return []byte("{}"), false, d.update(in)
	}
	return nil, false, fmt.Errorf("the stub does not know %q", action)
}

func (d *dynamo) update(in *dynamoRequest) error {
	it := d.items[string(in.Key["pk"])]
	if it == nil {
		return fmt.Errorf("no item %s", in.Key["pk"])
	}
	set, remove, _ := strings.Cut(in.UpdateExpression, " REMOVE ")
	for assignment := range strings.SplitSeq(strings.TrimPrefix(set, "SET "), ", ") {
		name, value, _ := strings.Cut(assignment, " = ")
		it[in.ExpressionAttributeNames[name]] = in.ExpressionAttributeValues[value]
	}
	for name := range strings.SplitSeq(remove, ", ") {
		delete(it, in.ExpressionAttributeNames[name])
	}
	return nil
}

// itemOverhead is what AWS adds to the size of each item when it bills storage.
const itemOverhead = 100

// bytes is the size of all items by AWS's rule: names, texts and binary values by their
// bytes, a number about half a byte for each digit, and the overhead.
func (d *dynamo) bytes() (all int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, it := range d.items {
		all += itemOverhead
		for name, raw := range it {
			var v struct {
				S, N *string
				B    []byte
				L    []json.RawMessage
			}
			if err := json.Unmarshal(raw, &v); err != nil {
				all += len(raw) // more than AWS would count
				continue
			}
			all += len(name) + len(v.B)
			switch {
			case v.S != nil:
				all += len(*v.S)
			case v.N != nil:
				all += (len(*v.N)+1)/2 + 1
			case v.L != nil:
				all += base64.StdEncoding.DecodedLen(len(raw))
			}
		}
	}
	return all
}
