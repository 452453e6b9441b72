package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/internal/proctest"
)

// deliverer is the program semel-deliver, built once.
var deliverer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "semel-example-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "semel-deliver")
	out, err := exec.Command("go", "build", "-o", path, "github.com/semel-go/semel/cmd/semel/semel-deliver").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if broker := os.Getenv(plainVar); broker != "" {
		log.Fatal(plainConsumer(broker, os.Getenv(toVar)))
	}
	if port := os.Getenv(brokerVar); port != "" {
		log.Fatal(serveBroker(port, os.Getenv(brokerDirVar)))
	}
	code := m.Run()
	if path, err := deliverer(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// start starts a program whose errors are the test's.
func start(t *testing.T, program string, args ...string) *proctest.Process {
	t.Helper()
	path, err := exec.LookPath(program)
	proctest.Need(t, err, exec.ErrNotFound)
	cmd := exec.Command(path, args...)
	cmd.Stderr = os.Stderr
	return proctest.Run(t, cmd)
}

// total is what the service says that it has booked.
type total struct{ Payments, Cents int }

func read(address string) (n total) {
	res, err := http.Get(address)
	if err != nil {
		return total{} // it starts again
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&n); err != nil {
		return total{}
	}
	return n
}

// services are the scripts, by the programs that run them.
var services = map[string]func(t *testing.T) string{"python3": func(*testing.T) string { return "service.py" }, "node": compiled}

// Each service books each payment once, although each is sent twice, and the service
// and semel deliver are killed while they work.
func TestServices_KilledWhileTheyWork_EachPaymentBookedOnce(t *testing.T) {
	for program, script := range services {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil {
				proctest.Need(t, err, exec.ErrNotFound)
			}
			service := script(t)
			path, err := deliverer()
			if err != nil {
				t.Fatal(err)
			}
			port, err := proctest.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			dir, kafka := t.TempDir(), exampletest.StartKafka(t)
			if err := run(t.Context(), kafka.Addr, "topics"); err != nil {
				t.Fatal(err)
			}
			address := fmt.Sprintf("http://127.0.0.1:%d/payments", port)
			serve := func() *proctest.Process {
				return start(t, program, service, fmt.Sprint(port), filepath.Join(dir, "booked"))
			}
			member := func() *proctest.Process {
				return start(t, path, "--from", "kafka://"+kafka.Addr+"/"+topic+"?session-timeout=6s", "--group", group, "--to", address,
					"--store", "sqlite:"+filepath.Join(dir, "semel.db"), "--lease", "1s", "--max-attempts", "0", "--log-level", "error")
			}
			s, m := serve(), member()
			var many []payment
			for n := range 200 {
				many = append(many, payment{fmt.Sprint("many-", n), fmt.Sprint("account-", n%5), 1})
			}
			many = append(many, payment{"bad", "", 0})
			if err := errors.Join(run(t.Context(), kafka.Addr, "send"), send(t.Context(), kafka.Addr, many...), send(t.Context(), kafka.Addr, many...)); err != nil {
				t.Fatal(err)
			}
			exampletest.WaitFor(t, "some are booked", func() bool { return read(address).Payments > 5 })
			s.Kill()
			m.Kill()
			s, m = serve(), member()
			exampletest.WaitFor(t, "all are handled", func() bool { return kafka.Committed(t, group) == kafka.Records(t, topic) })
			if got, want := read(address), (total{Payments: 204, Cents: 4307 + 200}); got != want {
				t.Errorf("booked %+v, want %+v", got, want)
			}
			s.Kill()
			m.Kill()
		})
	}
}

func TestRun_NoVerb_Error(t *testing.T) {
	if err := run(t.Context(), "", ""); err == nil {
		t.Error("run without a verb returned no error")
	}
}
