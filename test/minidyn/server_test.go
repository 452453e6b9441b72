package minidyn

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/truora/minidyn/server"
)

// handler is minidyn with what Store.Migrate needs in addition. It changes no request
// about items.
type handler struct {
	// tables guards minidyn's map of tables, which it changes without its own lock.
	// Requests about items hold it for reading, so that they meet as they come.
	tables  sync.RWMutex
	minidyn http.Handler
}

// start returns the address of a server without tables.
func start(t *testing.T) string {
	s := httptest.NewServer(&handler{minidyn: server.NewServer()})
	t.Cleanup(s.Close)
	return s.URL
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	switch operation {
	case "DescribeTimeToLive": // minidyn has none
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(`{"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}}`))
	case "CreateTable", "DeleteTable", "UpdateTable", "DescribeTable":
		h.tables.Lock()
		defer h.tables.Unlock()
		reply := httptest.NewRecorder()
		h.minidyn.ServeHTTP(reply, r)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(reply.Code)
		_, _ = w.Write(withStatus(reply.Body.Bytes()))
	default:
		h.tables.RLock()
		defer h.tables.RUnlock()
		h.minidyn.ServeHTTP(w, r)
	}
}

// withStatus adds the status to the description of a table, which minidyn leaves out.
func withStatus(reply []byte) []byte {
	var body struct{ Table map[string]any }
	if json.Unmarshal(reply, &body) != nil || body.Table == nil {
		return reply
	}
	body.Table["TableStatus"] = "ACTIVE"
	var out bytes.Buffer
	_ = json.NewEncoder(&out).Encode(body) // it was JSON
	return out.Bytes()
}
