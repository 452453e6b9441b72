//go:build unix

package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sandbox is one process of a function, and the Runtime API that it takes its
// invocations from. After a kill the next invocation starts another process.
type sandbox struct {
	t      *testing.T
	env    []string
	server *httptest.Server
	events chan invocation
	ended  chan result

	mu  sync.Mutex
	cmd *exec.Cmd // nil: no process runs
	log bytes.Buffer
}

type invocation struct {
	id       string
	body     []byte
	deadline time.Time
}

type result struct {
	id    string
	body  []byte
	error bool
}

var (
	errTimeout = errors.New("the invocation was stopped at its time-out")
	errKilled  = errors.New("the process was killed in the invocation")
)

func newSandbox(t *testing.T, function, folder, lease string) *sandbox {
	t.Helper()
	s := &sandbox{t: t, events: make(chan invocation), ended: make(chan result, 10)}
	const base = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case e := <-s.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", e.id)
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(e.deadline.UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:1:function:"+function)
			_, _ = w.Write(e.body) // a process that is killed here is noticed by invoke
		case <-r.Context().Done():
		}
	})
	end := func(failed bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // killed while it answered
			}
			w.WriteHeader(http.StatusAccepted)
			s.ended <- result{r.PathValue("id"), body, failed}
		}
	}
	mux.HandleFunc("POST "+base+"invocation/{id}/response", end(false))
	mux.HandleFunc("POST "+base+"invocation/{id}/error", end(true))
	s.server = httptest.NewServer(mux)
	s.env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(s.server.URL, "http://"),
		functionVar+"="+function, folderVar+"="+folder, leaseVar+"="+lease)
	t.Cleanup(func() {
		s.kill()
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// start starts the process if none runs.
func (s *sandbox) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = s.env
	cmd.Stderr = &s.log // the process writes each error of an invocation
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return
	}
	s.cmd = cmd
}

// signal sends a signal to the process, if one runs.
func (s *sandbox) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig) // it may have just ended
	}
}

func (s *sandbox) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // it may have just ended
		_ = s.cmd.Wait()         // its error is the kill
		s.cmd = nil
	}
}

// invoke runs one invocation. At its time-out the process is killed, as Lambda does.
// If killAfter is not 0, it is killed then.
func (s *sandbox) invoke(id string, event any, timeout, killAfter time.Duration) ([]byte, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	s.start()
	// The time begins when the process takes the event: its start does not count.
	e := invocation{id, body, time.Now().Add(timeout)}
	began := time.Now()
	for handed := false; !handed; {
		if time.Since(began) > time.Minute {
			s.kill() // no goroutine writes the log any more
			return nil, fmt.Errorf("the process takes no event; its log: %s", s.log.String())
		}
		select {
		case s.events <- e:
			handed = true
		case <-time.After(10 * time.Millisecond):
			e.deadline = time.Now().Add(timeout)
		}
	}
	var killed <-chan time.Time
	if killAfter > 0 {
		killed = time.After(killAfter)
	}
	for {
		select {
		case r := <-s.ended:
			switch {
			case r.id != id: // of an invocation that was given up as it ended
			case r.error:
				return nil, fmt.Errorf("the function failed: %s", r.body)
			default:
				return r.body, nil
			}
		case <-time.After(time.Until(e.deadline)):
			s.kill()
			return nil, errTimeout
		case <-killed:
			s.kill()
			return nil, errKilled
		}
	}
}
