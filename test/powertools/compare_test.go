//go:build unix

package powertools

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// latency is how long the server waits before it answers.
const latency = 5 * time.Millisecond

const endpointVar = "SEMEL_COMPARE_ENDPOINT" // this program is the client of Semel

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(endpointVar); endpoint != "" {
		if err := callSemel(endpoint); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// contender makes calls and prints the milliseconds and the microseconds of processor
// time that they took, and the median microseconds of a call.
type contender struct {
	name    string
	command func(endpoint string, calls, concurrent int) *exec.Cmd
}

func TestCompare_NewCalls_RequestsAndProcessorTime(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("compares with Powertools, which it gets from PyPI; SEMEL_TEST_COMPARE=1 runs it")
	}
	python := install(t)
	contenders := []contender{
		{"Powertools for Python", func(endpoint string, calls, concurrent int) *exec.Cmd {
			return exec.Command(python, "call.py", endpoint, strconv.Itoa(calls), strconv.Itoa(concurrent))
		}},
		{"Semel", func(endpoint string, calls, concurrent int) *exec.Cmd {
			return proctest.Self(t, endpointVar+"="+endpoint, "CALLS="+strconv.Itoa(calls), "CONCURRENT="+strconv.Itoa(concurrent))
		}},
	}
	for _, concurrent := range []int{1, 16, 64} {
		var medians, rates, times []float64
		for _, c := range contenders {
			calls := 1000
			if concurrent == 1 {
				calls = 300
			}
			server := newServer(t)
			out, err := c.command(server.URL, calls, concurrent).Output()
			if err != nil {
				t.Fatalf("%s: %v: %s", c.name, err, out)
			}
			var millis, micros, median float64
			if _, err := fmt.Sscan(string(out), &millis, &micros, &median); err != nil {
				t.Fatalf("%s printed %q: %v", c.name, out, err)
			}
			warm := calls / 10
			requests := float64(server.requests.Load()) / float64(calls+warm)
			if requests != 2 {
				t.Errorf("%s: %v requests for each call, want 2", c.name, requests)
			}
			medians, rates = append(medians, median), append(rates, float64(calls)/millis*1000)
			times = append(times, micros/float64(calls))
			t.Logf("%2d concurrent, %-25s: %.0f requests, %4.0f µs of the client's processor time and %5.1f ms (median) for each call, %5.0f calls/s, %5.0f calls for each second of processor time",
				concurrent, c.name, requests, micros/float64(calls), median/1000, float64(calls)/millis*1000, float64(calls)/micros*1e6)
		}
		for i, c := range contenders { // for test/benchmarks
			t.Logf(`benchmark: {"group":"Powertools","name":%q,"kind":"new calls","n":%d,"values":{"rate":%s,"ratio":%s,"p50":%s,"client":%s}}`,
				c.name, concurrent, stat(rates[i]), stat(rates[i]/rates[1]), stat(medians[i]/1000), stat(times[i]))
		}
		if concurrent == 1 && medians[0] < medians[1] {
			t.Errorf("with one caller a call takes %.0f µs with Semel and %.0f µs with Powertools", medians[1], medians[0])
		}
	}
}

// stat is a value that was measured once, as three equal quartiles.
func stat(v float64) string { return fmt.Sprintf("[%[1]g,%[1]g,%[1]g]", float64(int(v*1000+.5))/1000) }

// server answers each request as DynamoDB answers a write without old values.
type server struct {
	*httptest.Server
	requests atomic.Int64
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // a client that ended is seen by the test
		<-time.After(latency)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(s.Close)
	return s
}

// install gets Powertools from PyPI, and returns its Python.
func install(t *testing.T) string {
	folder := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("python3", "-m", "venv", folder).CombinedOutput(); err != nil {
		t.Fatalf("venv: %v: %s", err, out)
	}
	pip := exec.Command(filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "aws-lambda-powertools==3.37.0", "boto3==1.44.5")
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("pip: %v: %s", err, out)
	}
	return filepath.Join(folder, "bin", "python")
}

// callSemel is the program of Semel.
func callSemel(endpoint string) error {
	calls, err := strconv.Atoi(os.Getenv("CALLS"))
	if err != nil {
		return err
	}
	concurrent, err := strconv.Atoi(os.Getenv("CONCURRENT"))
	if err != nil {
		return err
	}
	st, err := dynamostore.New(dynamotest.Client(endpoint), "t", nil)
	if err != nil {
		return err
	}
	guard, err := semel.New(st, &semel.Options{Lease: time.Minute})
	if err != nil {
		return err
	}
	if _, err := run(guard, 0, calls/10, concurrent); err != nil {
		return err
	}
	before, began := processorTime(), time.Now()
	took, err := run(guard, 1_000_000, 1_000_000+calls, concurrent)
	if err != nil {
		return err
	}
	fmt.Println(time.Since(began).Milliseconds(), (processorTime() - before).Microseconds(), took[len(took)/2].Microseconds())
	return nil
}

// run makes calls and returns how long each took, the shortest first.
func run(guard *semel.Guard, from, to, concurrent int) ([]time.Duration, error) {
	type payment struct {
		ID    string `json:"id"`
		Cents int    `json:"cents"`
	}
	var next atomic.Int64
	next.Store(int64(from))
	errs, took := make(chan error, concurrent), make([]time.Duration, to-from)
	var all sync.WaitGroup
	for range concurrent {
		all.Go(func() {
			for n := next.Add(1) - 1; n < int64(to); n = next.Add(1) - 1 {
				p, begun := payment{fmt.Sprint("call ", n), 4200}, time.Now()
				_, err := semel.Do(context.Background(), guard, semel.Call{Operation: "pay", Tenant: semel.Shared, Key: p.ID, Payload: semel.JSON(p)},
					func(context.Context, *semel.Execution) (map[string]string, error) {
						return map[string]string{"receipt": p.ID}, nil
					})
				if err != nil {
					errs <- err
					return
				}
				took[n-int64(from)] = time.Since(begun)
			}
		})
	}
	all.Wait()
	close(errs)
	slices.Sort(took)
	return took, <-errs
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
