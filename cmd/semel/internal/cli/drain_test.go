//go:build unix

package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gate is a service that lets requests in, and out when it is told.
type gate struct {
	*httptest.Server
	in  chan string // the keys of those that came
	out chan int    // the statuses to answer with
}

func newGate(t testing.TB) *gate {
	g := &gate{in: make(chan string, 16), out: make(chan int, 16)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.in <- r.Header.Get("Idempotency-Key")
		status, ok := <-g.out
		if !ok {
			return // the test is over
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(r.Header.Get("Semel-Fence")))
	}))
	t.Cleanup(func() {
		close(g.out)
		g.Close()
	})
	return g
}

type answered struct {
	reply
	err error
}

// postLater posts in the background.
func postLater(t testing.TB, addr, key string) <-chan answered {
	c := make(chan answered, 1)
	tr := wire(t)
	go func() {
		r, err := post(t.Context(), tr, addr, "/pay", key, "")
		c <- answered{r, err}
	}()
	return c
}

func get(t testing.TB, address string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

func TestProxy_Stop_WaitsForRequestsInFlight(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	db := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	p := start(t, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", db, "--on-doubt", "park")
	if status, err := get(t, p.Admin+"/readyz"); status != 200 {
		t.Fatalf("readyz: %d, %v", status, err)
	}
	c := postLater(t, p.Addr, "k")
	<-g.in
	p.signal(syscall.SIGTERM)
	eventually(t, time.Minute, "readyz is 503", func() bool { status, _ := get(t, p.Admin+"/readyz"); return status == 503 })
	eventually(t, time.Minute, "no new connection", func() bool {
		n, err := net.Dial("tcp", p.Addr)
		if err == nil {
			_ = n.Close()
		}
		return err != nil
	})
	select {
	case r := <-c:
		t.Fatalf("the request did not go on: %+v", r)
	default:
	}
	g.out <- http.StatusCreated
	if r := <-c; r.err != nil || r.status != http.StatusCreated {
		t.Errorf("the request in flight got %+v", r)
	}
	if code := p.exit(2 * time.Minute); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
	p = start(t, "--listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", db, "--on-doubt", "park")
	if r := <-postLater(t, p.Addr, "k"); r.err != nil || !r.replayed() {
		t.Errorf("after the stop: %+v", r)
	}
}

func TestProxy_DrainTimeOver_ExitFailed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", "memory:", "--drain", "100ms")
	_ = postLater(t, p.Addr, "k")
	<-g.in
	p.signal(os.Interrupt.(syscall.Signal))
	if code := p.exit(2 * time.Minute); code != 1 || !strings.Contains(p.Log(), "1 request still in flight after 100ms given up") {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
}

// The process knows that it gives a request up, so its successor does not wait for the
// lease.
func TestProxy_DrainTimeOver_GivesClaimsBack(t *testing.T) {
	for policy, want := range map[string]string{"retry": "created", "park": "outcome_unknown"} {
		g := newGate(t)
		db := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
		args := []string{"--listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", db, "--on-doubt", policy, "--drain", "1s", "--lease", "10m"}
		p := start(t, args...)
		c := postLater(t, p.Addr, "k")
		<-g.in
		begun := time.Now()
		p.signal(syscall.SIGTERM)
		if r := <-c; r.err != nil || r.status != http.StatusBadGateway || (r.header.Get("Semel-Outcome") == "unknown") != (policy == "park") {
			t.Errorf("%s: the request that was given up got %+v", policy, r)
		}
		if code := p.exit(2 * time.Minute); code != 1 {
			t.Errorf("%s: exit code %d", policy, code)
		}
		t.Logf("%s: stopped after %v", policy, time.Since(begun))
		p = start(t, args...)
		c = postLater(t, p.Addr, "k")
		var r answered
		if policy == "retry" {
			select {
			case <-g.in:
				g.out <- http.StatusCreated // to the request that was given up, whose answer nobody gets
				g.out <- http.StatusCreated
				r = <-c
			case r = <-c: // the claim was not given back
			}
		} else {
			r = <-c
		}
		if got := map[bool]string{true: "created", false: "no"}[r.status == http.StatusCreated]; got != want && !strings.Contains(r.body, want) {
			t.Errorf("%s: the next request got %+v", policy, r)
		}
		p.kill()
	}
}

func TestProxy_StoreDies_NotReady(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	db := filepath.Join(t.TempDir(), "semel.db")
	p := start(t, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", "sqlite:"+db)
	g.out <- 201
	if r := <-postLater(t, p.Addr, "k1"); r.err != nil || r.status != 201 {
		t.Fatalf("%+v", r)
	}
	<-g.in
	for _, path := range []string{db, db + "-wal"} { // as a broken disk may leave it
		if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 4096)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Truncate(db+"-shm", 0)
	eventually(t, time.Minute, "readyz is 503", func() bool { status, _ := get(t, p.Admin+"/readyz"); return status == 503 })
	if r := <-postLater(t, p.Addr, "k2"); r.err != nil || r.status != 503 {
		t.Errorf("%+v", r)
	}
	if status, err := get(t, p.Admin+"/healthz"); status != 200 {
		t.Errorf("healthz: %d, %v", status, err)
	}
	select {
	case key := <-g.in:
		t.Errorf("%s reached the service without a record", key)
	default:
	}
}
