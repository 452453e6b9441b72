package semelhttp

import (
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
)

// secret is written down independently of forbidden.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"set-cookie", "proxy-", "access-control-", "trailer:"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.Contains(" authorization www-authenticate authentication-info cookie date age connection keep-alive te trailer transfer-encoding upgrade content-length ", " "+name+" ")
}

func FuzzReplayHeaders(f *testing.F) {
	for _, name := range []string{"Set-Cookie", "set-cookie2", "Authorization", "WWW-Authenticate", "Content-Type", "Connection", "x", "Trailer:X", "Access-Control-Allow-Origin", "Proxy-Anything", ""} {
		f.Add(name, name, "value", false)
		f.Add(strings.ToUpper(name), strings.ToLower(name), "a\r\nSet-Cookie: b", true)
	}
	f.Fuzz(func(t *testing.T, listed, set, value string, gone bool) {
		o := Options{ReplayHeaders: []string{listed, "Location"}}
		c, err := o.config()
		if err != nil {
			t.Skip() // not a header's name
		}
		var s snapshot
		s.take(http.Header{set: {value}, textproto.CanonicalMIMEHeaderKey(set): {value}, "Set-Cookie": {"x"}, "Location": {"/7"}}, make([]headerLine, 0, 2))
		kept := c.kept(&s, gone)
		// A store may give back anything: what is sent is judged again.
		for name, header := range map[string]map[string][]string{"kept": kept, "found": {set: {value}, "Set-Cookie": {"x"}, "Location": {"/7"}}} {
			w := httptest.NewRecorder()
			c.replay(w, &semel.Outcome{Code: 201, Header: header, Gone: gone, Body: []byte("b")})
			for sent := range w.Header() {
				if secret(sent) && sent != "Cache-Control" || sent == "Set-Cookie" {
					t.Fatalf("%s: %q was replayed (listed %q, set %q)", name, sent, listed, set)
				}
			}
			if w.Header().Get("Location") != "/7" {
				t.Fatalf("%s: Location was not replayed", name)
			}
			if gone && (w.Body.Len() > 0 || w.Header().Get("Content-Type") != "") {
				t.Fatalf("%s: a tombstone has a body", name)
			}
		}
		for name := range kept {
			if secret(name) {
				t.Fatalf("%q was kept", name)
			}
		}
	})
}

func TestASnapshotSeesEachChange(t *testing.T) {
	base := func() http.Header {
		return http.Header{"A": {"1"}, "B": {"2", "3"}, "C": nil, "D": {}, "E": {"4"}, "F": {"5"}}
	}
	h := base()
	var s snapshot
	s.take(h, nil)
	if !s.is(h) {
		t.Fatal("an unchanged header counts as changed")
	}
	for name, change := range map[string]func(http.Header){
		"set":      func(h http.Header) { h.Set("A", "1") },
		"add":      func(h http.Header) { h.Add("B", "4") },
		"delete":   func(h http.Header) { h.Del("C") },
		"new":      func(h http.Header) { h.Set("G", "6") },
		"exchange": func(h http.Header) { h.Del("A"); h.Set("G", "6") },
	} {
		h := base()
		var s snapshot
		s.take(h, nil)
		change(h)
		if s.is(h) {
			t.Errorf("%s: not seen", name)
		}
		s.restore(h)
		if len(h) != 6 || h.Get("A") != "1" || len(h["B"]) != 2 || h.Get("G") != "" {
			t.Errorf("%s: restored is %v", name, h)
		}
	}
}

func TestKeptHeadersAreACopy(t *testing.T) {
	c, err := (&Options{ReplayHeaders: []string{"Link"}}).config()
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Link": {"1", "2"}, "link": {"3"}}
	var s snapshot
	s.take(h, nil)
	kept := c.kept(&s, false)
	h["Link"][0], h["link"][0] = "x", "x" //nolint:staticcheck // as a careless handler spells it
	got := strings.Join(kept["Link"], " ")
	if got != "1 2 3" && got != "3 1 2" {
		t.Errorf("kept is %q", got)
	}
}

func TestAHeaderThatIsForOneConnectionIsNotKept(t *testing.T) {
	c, err := (&Options{ReplayHeaders: []string{"X-Hop", "X-End"}}).config()
	if err != nil {
		t.Fatal(err)
	}
	var s snapshot
	s.take(http.Header{"Connection": {"close, x-hop"}, "X-Hop": {"1"}, "X-End": {"2"}}, nil)
	if kept := c.kept(&s, false); len(kept) != 1 || kept["X-End"][0] != "2" {
		t.Errorf("kept is %v", kept)
	}
	s.take(http.Header{"Connection": {"x-hop"}, "X-Hop": {"1"}}, nil)
	if kept := c.kept(&s, false); len(kept) != 0 {
		t.Errorf("kept is %v", kept)
	}
}

func TestTheSharedHeaderIsTheRightOne(t *testing.T) {
	c, err := (*Options)(nil).config()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, line := range [][2]string{{"Content-Type", "a/b"}, {"Content-Type", "c/d"}, {"Location", "/7"}} {
		wg.Go(func() {
			for range 1000 {
				var s snapshot
				s.take(http.Header{line[0]: {line[1]}}, nil)
				if kept := c.kept(&s, false); len(kept) != 1 || len(kept[line[0]]) != 1 || kept[line[0]][0] != line[1] {
					t.Errorf("kept is %v, want %v", kept, line)
					return
				}
			}
		})
	}
	wg.Wait()
}
