package semelhttp

import (
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// neverReplayed lists the forbidden headers again, independently of forbidden.
func neverReplayed(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"set-cookie", "proxy-", "trailer:"} {
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
		kept := c.keptHeaders(http.Header{set: {value}, textproto.CanonicalMIMEHeaderKey(set): {value}, "Set-Cookie": {"x"}, "Location": {"/7"}}, gone)
		// A store may return any header, so replay checks each one again.
		for name, header := range map[string][]store.Header{"kept": kept, "found": {{Name: set, Value: value}, {Name: "Set-Cookie", Value: "x"}, {Name: "Location", Value: "/7"}}} {
			w := httptest.NewRecorder()
			c.replay(w, &store.Outcome{Code: 201, Header: header, Gone: gone, Body: []byte("b")})
			for sent := range w.Header() {
				if sent == "Content-Length" && !gone && w.Header().Get(sent) == "1" {
					continue // replay's own: the length of the body
				}
				if neverReplayed(sent) && sent != "Cache-Control" || sent == "Set-Cookie" {
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
		for _, h := range kept {
			if neverReplayed(h.Name) {
				t.Fatalf("%q was kept", h.Name)
			}
		}
	})
}

func TestKeptHeaders_OriginalChanged_StayTheSame(t *testing.T) {
	c, err := (&Options{ReplayHeaders: []string{"Link"}}).config()
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Link": {"1", "2"}, "link": {"3"}}
	kept := c.keptHeaders(h, false)
	h["Link"][0], h["link"][0] = "x", "x" //nolint:staticcheck // as a careless handler spells it
	got := ""
	for _, line := range kept {
		got += line.Name + line.Value
	}
	if got != "Link1Link2Link3" {
		t.Errorf("kept is %q", got)
	}
}

func TestKeptHeaders_NamedByConnection_AreLeftOut(t *testing.T) {
	c, err := (&Options{ReplayHeaders: []string{"X-Hop", "X-End"}}).config()
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Connection": {"close, x-hop"}, "X-Hop": {"1"}, "X-End": {"2"}}
	if kept := c.keptHeaders(h, false); len(kept) != 1 || kept[0] != (store.Header{Name: "X-End", Value: "2"}) {
		t.Errorf("kept is %v", kept)
	}
	h = http.Header{"Connection": {"x-hop"}, "X-Hop": {"1"}}
	if kept := c.keptHeaders(h, false); len(kept) != 0 {
		t.Errorf("kept is %v", kept)
	}
}

func TestKeptHeaders_Always_OrderedByName(t *testing.T) {
	c, err := (*Options)(nil).config()
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Header{{Name: "Content-Type", Value: "a/b"}, {Name: "Link", Value: "2"}, {Name: "Link", Value: "1"}, {Name: "Location", Value: "/7"}}
	for range 100 { // the order of a map differs each time
		h := http.Header{"Location": {"/7"}, "Link": {"2", "1"}, "X": {"-"}, "Content-Type": {"a/b"}}
		if kept := c.keptHeaders(h, false); !slices.Equal(kept, want) {
			t.Fatalf("kept is %v, want %v", kept, want)
		}
	}
}

func TestReplay_SameHeaderSetBefore_IsReplaced(t *testing.T) {
	c, err := (*Options)(nil).config()
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Link": {"old"}, "Location": {"/old"}, "X": {"stays"}}
	c.setReplayHeaders(h, &store.Outcome{Header: []store.Header{{Name: "link", Value: "1"}, {Name: "Location", Value: "/7"}, {Name: "Link", Value: "2"}}})
	for name, want := range map[string]string{"Link": "1 2", "Location": "/7", "X": "stays"} {
		if got := strings.Join(h[name], " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
