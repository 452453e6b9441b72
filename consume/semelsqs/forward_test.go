package semelsqs_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// spy passes requests on to a server and notes their bodies.
type spy struct {
	url      string
	mu       sync.Mutex
	requests map[string][]string // by the operation
	tooLarge int                 // the first sent messages, which are refused
	// cutBodies takes a byte from each received body that contains "cut off".
	cutBodies bool
}

// newSpy makes a spy. If refuse, it refuses the last entry of each batch of deletions.
func newSpy(t *testing.T, url string, refuse bool) *spy {
	t.Helper()
	s := &spy{requests: map[string][]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		s.mu.Lock()
		s.requests[operation] = append(s.requests[operation], string(body))
		n := len(s.requests[operation])
		s.mu.Unlock()
		if operation == "SendMessage" && n <= s.tooLarge {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#InvalidParameterValue","message":"Message must be shorter than 262144 bytes."}`) // the client is in this process
			return
		}
		if operation == "ReceiveMessage" && s.cutBodies {
			recorded := httptest.NewRecorder()
			forward(recorded, r, url, body, false)
			w.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
			_, _ = io.WriteString(w, strings.ReplaceAll(recorded.Body.String(), "cut off", "cut of")) // the client is in this process
			return
		}
		forward(w, r, url, body, refuse && operation == "DeleteMessageBatch")
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *spy) calls(operation string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[operation])
}

// forward passes a request on to a server, but may refuse the last entry of a batch.
func forward(w http.ResponseWriter, r *http.Request, url string, body []byte, refuse bool) {
	var err error
	refused := ""
	if refuse {
		var batch struct {
			QueueURL string `json:"QueueUrl"`
			Entries  []struct {
				ID            string `json:"Id"`
				ReceiptHandle string
			}
		}
		if err := json.Unmarshal(body, &batch); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		last := len(batch.Entries) - 1
		refused, batch.Entries = batch.Entries[last].ID, batch.Entries[:last]
		if last == 0 {
			answer(w, nil, refused)
			return
		}
		if body, err = json.Marshal(batch); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	on.Header = r.Header.Clone()
	reply, err := http.DefaultClient.Do(on)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = reply.Body.Close() }()
	out, err := io.ReadAll(reply.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if refused != "" {
		answer(w, out, refused)
		return
	}
	w.Header().Set("Content-Type", reply.Header.Get("Content-Type"))
	w.WriteHeader(reply.StatusCode)
	_, _ = w.Write(out) // the client is in this process
}

// answer adds a refused entry to the answer to a batch.
func answer(w http.ResponseWriter, out []byte, refused string) {
	result := map[string]any{}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &result); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	result["Failed"] = []map[string]any{{"Id": refused, "Code": "InternalError", "Message": "try again", "SenderFault": false}}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(result) // the client is in this process
}
