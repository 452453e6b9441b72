package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/observe"
)

// step is a request of a script.
type step struct {
	method, path, tenant, key, body string
	answer                          string // of the service: a status, "lost", "final-500" or "no-effect-200"
	duplicate                       bool   // sent while the request before it is held in the service
}

func (s step) headers() []string {
	h := []string{"X-Tenant", s.tenant, "X-Answer", s.answer, "Content-Type", "text/plain"}
	if s.key != "" {
		h = append(h, "Idempotency-Key", s.key)
	}
	return h
}

// actor is a service that answers as each request says, and holds some.
type actor struct {
	mu      sync.Mutex
	holding chan struct{} // of the next request; nil: it is not held
	arrived chan struct{}
}

func (a *actor) hold() (arrived <-chan struct{}, release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	holding := make(chan struct{})
	a.holding, a.arrived = holding, make(chan struct{})
	return a.arrived, sync.OnceFunc(func() { close(holding) })
}

func (a *actor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	holding, arrived := a.holding, a.arrived
	a.holding, a.arrived = nil, nil
	a.mu.Unlock()
	if holding != nil {
		close(arrived)
		<-holding
	}
	w.Header().Set("X-Attempt", r.Header.Get("Semel-Attempt"))
	answer := r.Header.Get("X-Answer")
	if answer == "lost" {
		panic(http.ErrAbortHandler)
	}
	if status, ok := strings.CutPrefix(answer, "final-"); ok {
		w.Header().Set("Semel-Result", "final")
		answer = status
	}
	if status, ok := strings.CutPrefix(answer, "no-effect-"); ok {
		w.Header().Set("Semel-Result", "no-effect")
		answer = status
	}
	status, err := strconv.Atoi(answer)
	if err != nil {
		panic(err)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "answer")
}

// tally is a count of results and of doubts.
type tally map[string]uint64

// judge says what a proxy that does not observe has done with a request, by its answer.
func (t tally) judge(s step, r reply) {
	code := ""
	if strings.HasPrefix(r.header.Get("Content-Type"), "application/problem+json") {
		var doc struct{ Code string }
		_ = json.Unmarshal([]byte(r.body), &doc)
		code = doc.Code
	}
	attempt := r.header.Get("X-Attempt")
	switch {
	case s.method == "GET" && (code == "" || code == "upstream_lost"):
		t["passed"]++
	case s.duplicate && (r.replayed() || code == "in_progress"):
		t["duplicate_during"]++
	case r.replayed():
		t["duplicate_after"]++
	case code == "payload_mismatch":
		t["mismatch"]++
	case code == "outcome_unknown":
		t["duplicate_in_doubt"]++
	case code == "key_missing" || code == "key_malformed":
		t[code]++
	case code == "upstream_lost" && s.key == "":
		t["unkeyed"]++
	case code == "upstream_lost":
		t["sent"]++
		t["doubt silence"]++
	case code != "":
		t["refused_"+code]++
	case attempt == "":
		t["unkeyed"]++
	default:
		t["sent"]++
		if r.status >= 500 && !strings.HasPrefix(s.answer, "final") && !strings.HasPrefix(s.answer, "no-effect") {
			t["doubt server_error"]++
		}
	}
}

// observed is the tally of an observing proxy. Its answers do not say which attempt a
// request was, so first calls and repeats count together.
func observed(r *observe.Report) tally {
	t := tally{}
	for _, rule := range r.Rules {
		for result, n := range rule.Results {
			switch result {
			case observe.First, observe.Again:
				t["sent"] += n
			default:
				t[string(result)] += n
			}
		}
		for reason, n := range rule.Doubt {
			t["doubt "+string(reason)] += n
		}
	}
	return t
}

// perform plays a script, and calls each with the answers.
func perform(t *testing.T, s *stage, a *actor, script []step, each func(step, reply)) {
	t.Helper()
	for i := 0; i < len(script); i++ {
		first := script[i]
		if i+1 == len(script) || !script[i+1].duplicate {
			each(first, s.send(first.method, first.path, first.body, first.headers()...))
			continue
		}
		arrived, release := a.hold()
		answers := make(chan reply)
		keys := keysOf(s)
		go func() { answers <- s.send(first.method, first.path, first.body, first.headers()...) }()
		<-arrived
		if s.proxy.Observed() != nil {
			eventually(t, "the twin has claimed its key", func() bool { return keysOf(s) > keys })
		}
		i++
		each(script[i], s.send(script[i].method, script[i].path, script[i].body, script[i].headers()...))
		release()
		each(first, <-answers)
	}
}

func keysOf(s *stage) int {
	if r := s.proxy.Observed(); r != nil {
		return r.Keys
	}
	return 0
}

// randomScript makes steps of few keys, so that most requests are duplicates.
func randomScript(seed uint64, n int) []step {
	random := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	script := make([]step, 0, n)
	for len(script) < n {
		s := step{
			method: "POST", path: pick("/pay", "/pay", "/required", "/parked"), tenant: pick("ann", "bob"), key: fmt.Sprint("key", random.IntN(12)), body: pick("a", "a", "a", "b"),
			answer: pick("201", "201", "201", "422", "500", "503", "401", "302", "lost", "final-500", "no-effect-200"),
		}
		switch random.IntN(12) {
		case 0:
			s.key = ""
		case 1:
			s.key = pick(`"open`, "two words", "semel-fields:x")
		case 2:
			s.method = "GET"
		case 3: // a new key, and a duplicate at the same moment
			s.key, s.answer = fmt.Sprint("new", len(script)), pick("201", "500", "lost")
			again := s
			again.duplicate = true
			script = append(script, s)
			s = again
		case 4:
			s.tenant = ""
		}
		script = append(script, s)
	}
	return script
}
