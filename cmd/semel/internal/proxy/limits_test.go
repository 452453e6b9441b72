package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// held answers when release is closed, and counts the requests that wait.
func held(release chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") == "ann" {
			<-release
		}
		w.WriteHeader(http.StatusCreated)
	}
}

// One tenant has all its requests in flight. Further ones are refused at once, and
// another tenant is served.
func TestLimits_TenantFloods_OthersServed(t *testing.T) {
	release := make(chan struct{})
	s := play(t, held(release), byTenant+"tenant-requests: 4\nmax-requests: 8\n")
	var flood sync.WaitGroup
	for i := range 4 {
		flood.Go(func() {
			if r := s.pay(fmt.Sprint("a", i), "X-Tenant", "ann"); r.status != 201 {
				t.Errorf("%+v", r)
			}
		})
	}
	eventually(t, "four requests are upstream", func() bool { return s.backend.count() == 4 })
	for i := range 20 {
		r := s.pay(fmt.Sprint("more", i), "X-Tenant", "ann")
		if r.status != 429 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `"tenant_limit"`) {
			t.Fatalf("of the flood: %+v", r)
		}
		if r := s.pay(fmt.Sprint("b", i), "X-Tenant", "bob"); r.status != 201 {
			t.Fatalf("of another tenant: %+v", r)
		}
	}
	for _, tenant := range []string{"cid", "dan", "eva"} { // they fill what is left
		if r := s.pay("k", "X-Tenant", tenant); r.status != 201 {
			t.Errorf("%s: %+v", tenant, r)
		}
	}
	close(release)
	flood.Wait()
	if text := fetch(t, "GET", s.admin.URL+"/metrics", "").body; !strings.Contains(text, "semel_limit_tenant_requests_refused_total 20\n") {
		t.Errorf("counted:\n%s", text)
	}
	if r := s.pay("more0", "X-Tenant", "ann"); r.status != 201 || r.replayed() {
		t.Errorf("the refused request again: %+v", r)
	}
}

func TestLimits_AllPlacesTaken_503(t *testing.T) {
	release := make(chan struct{})
	s := play(t, held(release), byTenant+"max-requests: 2\n")
	var flood sync.WaitGroup
	defer flood.Wait()
	defer close(release)
	for i := range 2 {
		flood.Go(func() { s.pay(fmt.Sprint("a", i), "X-Tenant", "ann") })
	}
	eventually(t, "two requests are upstream", func() bool { return s.backend.count() == 2 })
	if r := s.pay("k", "X-Tenant", "bob"); r.status != 503 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `"overloaded"`) {
		t.Errorf("%+v", r)
	}
	if r := s.send("GET", "/page", "", "X-Tenant", "bob"); r.status != 201 {
		t.Errorf("without a key: %+v", r)
	}
}

func TestLimits_KeysOfAMinute_429(t *testing.T) {
	s := play(t, created(), byTenant+"tenant-keys: 2\n")
	for i := range 3 {
		r := s.pay(fmt.Sprint(i), "X-Tenant", "ann")
		if want := []int{201, 201, 429}[i]; r.status != want {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if r := s.pay("k", "X-Tenant", "bob"); r.status != 201 {
		t.Errorf("another tenant: %+v", r)
	}
}

// The log names a tenant that a limit begins to refuse, once, and the option that allows
// more. Each refusal is there for debugging, with the tenant.
func TestLimits_TenantFloods_LogNamesItOnce(t *testing.T) {
	s := play(t, created(), byTenant+"tenant-keys: 2\n")
	for i := range 12 {
		s.pay(fmt.Sprint(i), "X-Tenant", "ann")
	}
	s.pay("k", "X-Tenant", "bob")
	warning := regexp.MustCompile(`level=WARN msg="a limit refuses requests of a tenant[^"]*" tenant=(\w+) limit=tenant_keys option="test.yaml:\d+: tenant-keys" value=2\n`)
	log := s.log.String()
	if all := warning.FindAllStringSubmatch(log, -1); len(all) != 1 || all[0][1] != "ann" || strings.Count(log, "level=WARN") != 1 {
		t.Errorf("warned %d times: %s", len(all), log)
	}
	if n := strings.Count(log, "level=DEBUG msg=refused tenant=ann method=POST path=/pay code=tenant_limit status=429 "); n != 10 {
		t.Errorf("%d refusals are logged with the tenant: %s", n, log)
	}
}

// A limit for all tenants is logged in the same way, whether or not the tenant is known.
func TestLimits_AllRefused_LogWarnsOnce(t *testing.T) {
	for name, c := range map[string]struct{ doc, limit string }{
		"Requests": {"max-requests: 1\n", "requests"},
		"Keys":     {"max-keys: 1\n", "keys"},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			s := play(t, held(release), byTenant+c.doc)
			var first sync.WaitGroup
			first.Go(func() { s.pay("a", "X-Tenant", "ann") })
			eventually(t, "a request is upstream", func() bool { return s.backend.count() == 1 })
			for i := range 5 {
				if r := s.pay(fmt.Sprint(i), "X-Tenant", "bob"); r.status != 503 {
					t.Errorf("%+v", r)
				}
			}
			close(release)
			first.Wait()
			log := s.log.String()
			if strings.Count(log, "level=WARN") != 1 ||
				!regexp.MustCompile(`level=WARN msg="a limit refuses requests of all tenants[^"]*" limit=`+c.limit+` option="test.yaml:\d+: max-`+c.limit+`" value=1\n`).MatchString(log) {
				t.Errorf("logged: %s", log)
			}
		})
	}
}

func TestLimits_KeptBytes_NextRequest429(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 3000)) }, byTenant+"tenant-bytes: 2KiB\n")
	if r := s.pay("1", "X-Tenant", "ann"); r.status != 200 || len(r.body) != 3000 {
		t.Fatalf("%+v", r)
	}
	if r := s.pay("2", "X-Tenant", "ann"); r.status != 429 {
		t.Errorf("%+v", r)
	}
}

// Answers that are too large to keep, and replays, cost as much as those that are kept.
func TestLimits_AnswersNotKeptAndReplays_Count(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		keys []string
	}{"too large to keep": {40 << 10, []string{"1", "2"}}, "replays": {3 << 10, []string{"1", "1", "1", "2"}}} {
		s := play(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, c.size)) }, byTenant+"tenant-bytes: 64KiB\nmax-outcome: 4KiB\n")
		for i, key := range c.keys {
			want := http.StatusOK
			if i == len(c.keys)-1 {
				want = http.StatusTooManyRequests
			}
			if r := s.pay(key, "X-Tenant", "ann"); r.status != want {
				t.Errorf("%s: request %d: %d, want %d", name, i, r.status, want)
			}
		}
	}
}

// begin sends the head of a request, and n bytes of a body of 100,000.
func (s *stage) begin(tenant, key string, n int) net.Conn {
	s.t.Helper()
	c, _ := s.half(fmt.Sprintf("POST /pay HTTP/1.1\r\nHost: a\r\nX-Tenant: %s\r\nIdempotency-Key: %s\r\nContent-Length: 100000\r\n\r\n", tenant, key))
	if _, err := c.Write(make([]byte, n)); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// metric is the value of a metric without labels.
func (s *stage) metric(name string) string {
	s.t.Helper()
	_, rest, _ := strings.Cut(fetch(s.t, "GET", s.admin.URL+"/metrics", "").body, "\n"+name+" ")
	n, _, _ := strings.Cut(rest, "\n")
	return n
}

// Bodies that do not end hold their bytes, of which a tenant has a share.
func TestLimits_UnfinishedBodies_Bounded(t *testing.T) {
	s := play(t, created(), byTenant+"max-body: 100KiB\ntenant-spool: 200KiB\nmax-spool: 300KiB\n")
	spooled := func() string { return s.metric("semel_spooled_bytes") }
	one, two := s.begin("ann", "1", 99_000), s.begin("ann", "2", 99_000)
	eventually(t, "both bodies are held", func() bool { return spooled() == "198000" })
	if r := s.send("POST", "/pay", strings.Repeat("x", 10_000), "Idempotency-Key", "3", "X-Tenant", "ann"); r.status != 429 || !strings.Contains(r.body, "tenant_limit") {
		t.Errorf("%+v", r)
	}
	if r := s.send("POST", "/pay", strings.Repeat("x", 10_000), "Idempotency-Key", "3", "X-Tenant", "bob"); r.status != 201 {
		t.Errorf("another tenant: %+v", r)
	}
	one.Close()
	two.Close()
	eventually(t, "nothing is held", func() bool { return spooled() == "0" })
	if r := s.send("POST", "/pay", strings.Repeat("x", 10_000), "Idempotency-Key", "3", "X-Tenant", "ann"); r.status != 201 {
		t.Errorf("after they ended: %+v", r)
	}
}

// The proxy reads the body of a refused request before its pause, and discards it. Bytes that
// it counted would count until it restarts, and at last all tenants would be refused.
func TestLimits_RefusalsPause_HoldNoBytes(t *testing.T) {
	for name, limit := range map[string]string{
		"NotAdmitted": "tenant-keys: 1\n",
		"Admitted":    "tenant-spool: 100KiB\nmax-body: 100KiB\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, created(), byTenant+"refusal-pause: 1ms\n"+limit)
			if r := s.pay("first", "X-Tenant", "ann"); r.status != 201 {
				t.Fatalf("%+v", r)
			}
			held := s.begin("ann", "held", 99_000)
			defer held.Close()
			if name == "Admitted" {
				eventually(t, "a body is held", func() bool { return s.metric("semel_spooled_bytes") == "99000" })
			}
			for i := range 5 {
				if r := s.send("POST", "/pay", strings.Repeat("x", 10_000), "Idempotency-Key", fmt.Sprint(i), "X-Tenant", "ann"); r.status != 429 {
					t.Errorf("%+v", r)
				}
			}
			held.Close()
			eventually(t, "no request is in flight", func() bool { return s.metric("semel_requests_in_flight") == "0" })
			if n := s.metric("semel_spooled_bytes"); n != "0" {
				t.Errorf("%s bytes are held without a request", n)
			}
			if name == "Admitted" {
				if n := s.metric("semel_limit_tenant_spool_refused_total"); n != "5" {
					t.Errorf("5 refusals are counted as %s", n)
				}
			}
		})
	}
}

// Large bodies whose keys come from their fields do not fill the memory.
func TestKeyFrom_LargeBodies_MemoryBounded(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, "scope: single\nkey-from: [id]\n")
	s.backend.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	})
	runtime.GC()
	var before, peak runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			var now runtime.MemStats
			runtime.GC() // only what is in use counts
			if runtime.ReadMemStats(&now); now.HeapAlloc > peak.HeapAlloc {
				peak = now
			}
		}
	}()
	const size = 9 << 20
	text := bytes.Repeat([]byte("x"), size)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			body := io.MultiReader(strings.NewReader(`{"text":"`), bytes.NewReader(text), strings.NewReader(fmt.Sprintf(`","id":%d}`, i)))
			res, err := http.Post(s.URL+"/pay", "application/json", body)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusCreated {
				t.Errorf("%s", res.Status)
			}
		})
	}
	all.Wait()
	close(stop)
	<-stopped
	if used := int64(peak.HeapAlloc) - int64(before.HeapAlloc); used > 120<<20 {
		t.Errorf("12 bodies of 9 MiB took %d MiB of memory", used>>20)
	}
}
