package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// The fates of a request.
const (
	fateLost    = iota // it does not arrive
	fateCut            // it is carried out, and the reply is lost
	fateLate           // it is carried out after the client has given up on it
	fateDoubled        // it is carried out again, some time later
	fates
)

var errNetwork = errors.New("test: the connection was cut")

// badNetwork is a client's way to a server. A part of the requests meets a fate.
type badNetwork struct {
	perMille atomic.Int64
	counts   [fates]atomic.Int64
	late     sync.WaitGroup
	client   http.Client
}

func newBadNetwork(t testing.TB, perMille int64) *badNetwork {
	n := &badNetwork{client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	n.perMille.Store(perMille)
	t.Cleanup(func() {
		n.late.Wait()
		n.client.CloseIdleConnections()
	})
	return n
}

// through is a client of the shared server that sends through n.
func (n *badNetwork) through(t testing.TB) *dynamodb.Client {
	return dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) { o.HTTPClient = n })
}

// Do implements the HTTP client of the SDK.
func (n *badNetwork) Do(req *http.Request) (*http.Response, error) {
	if rand.Int64N(1000) >= n.perMille.Load() {
		return n.client.Do(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	send := func(ctx context.Context) (*http.Response, error) {
		again := req.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		return n.client.Do(again)
	}
	late := func() {
		n.late.Go(func() {
			<-time.After(rand.N(400 * time.Millisecond))
			if reply, err := send(context.Background()); err == nil {
				_ = reply.Body.Close()
			}
		})
	}
	fate := rand.IntN(fates)
	n.counts[fate].Add(1)
	switch fate {
	case fateCut:
		if reply, err := send(req.Context()); err == nil {
			_ = reply.Body.Close()
		}
	case fateLate:
		late()
	case fateDoubled:
		late()
		return send(req.Context())
	}
	return nil, errNetwork
}

// allSeen reports whether each fate has come.
func (n *badNetwork) allSeen() bool {
	for fate := range n.counts {
		if n.counts[fate].Load() == 0 {
			return false
		}
	}
	return true
}

// sawAll fails the test if a fate never came.
func (n *badNetwork) sawAll(t testing.TB) {
	t.Helper()
	for fate := range n.counts {
		if n.counts[fate].Load() == 0 {
			t.Errorf("fate %d never came: the test sees nothing of it", fate)
		}
	}
}

// newLosing is a client that loses the first reply to each change, so that the SDK
// sends the change again.
func newLosing(t testing.TB) *dynamodb.Client {
	url := dynamotest.URL(t)
	return dynamotest.Client(url, func(o *dynamodb.Options) {
		var calls atomic.Int64
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			reply, err := http.DefaultClient.Do(req)
			if err == nil && req.Header.Get("X-Amz-Target") != "DynamoDB_20120810.GetItem" && calls.Add(1)%2 == 1 {
				_ = reply.Body.Close()
				return nil, errNetwork
			}
			return reply, err
		})
	})
}

// doFunc is a function as the SDK's HTTP client.
type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(req *http.Request) (*http.Response, error) { return f(req) }

// holding holds the next request of an operation back until release is closed.
type holding struct {
	operation     string
	hold          atomic.Bool
	held, release chan struct{}
}

func newHolding(operation string) *holding {
	return &holding{operation: "DynamoDB_20120810." + operation, held: make(chan struct{}), release: make(chan struct{})}
}

func (h *holding) client(t testing.TB) *dynamodb.Client {
	return dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) {
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Amz-Target") == h.operation && h.hold.CompareAndSwap(true, false) {
				close(h.held)
				<-h.release
			}
			return http.DefaultClient.Do(req)
		})
	})
}
