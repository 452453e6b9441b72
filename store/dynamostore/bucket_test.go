package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// bucket is a bucket of the emulator's S3, by plain HTTP. It remembers the names of the
// objects, and fails while err is set.
type bucket struct {
	url string

	mu    sync.Mutex
	names []string // in the order of their Put
	err   error
	put   func(context.Context) // called before each Put
}

var bucketClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second}}

func newBucket(t testing.TB) *bucket {
	b := &bucket{url: dynamotest.URL(t) + "/" + newTable() + "/"}
	if _, err := b.send(t.Context(), http.MethodPut, "", nil); err != nil {
		t.Fatalf("make a bucket: %v", err)
	}
	return b
}

func (b *bucket) send(ctx context.Context, method, name string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(b.url+name, "/"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	reply, err := bucketClient.Do(req)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(reply.Body)
	switch err := errors.Join(err, reply.Body.Close()); {
	case err != nil:
		return nil, err
	case reply.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	case reply.StatusCode >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s %s is answered by %s: %s", method, name, reply.Status, got)
	}
	return got, nil
}

func (b *bucket) Put(ctx context.Context, name string, body []byte) error {
	b.mu.Lock()
	err, put := b.err, b.put
	b.names = append(b.names, name)
	b.mu.Unlock()
	if put != nil {
		put(ctx)
	}
	if err == nil {
		_, err = b.send(ctx, http.MethodPut, name, body)
	}
	return err
}

func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return b.send(ctx, http.MethodGet, name, nil)
}

// fail has each Put and Get end with err; nil: they work again.
func (b *bucket) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// made are the names of all objects that were to be put.
func (b *bucket) made() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.names...)
}
