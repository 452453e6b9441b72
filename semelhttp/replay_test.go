package semelhttp_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// manyHeaders sets one header of each kind.
func manyHeaders(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for _, name := range []string{
		"Allow", "Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Content-Range", "Location", "Link", "ETag", "Last-Modified", "Retry-After",
		"X-Listed", "X-Other", "Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Authorization", "Access-Control-Allow-Origin", "Age", "Proxy-Authenticate",
	} {
		h.Set(name, "1")
	}
	h.Add("Link", "2")
	w.WriteHeader(201)
	_, _ = io.WriteString(w, "secret")
}

func TestReplay_Headers_ByAllowList(t *testing.T) {
	byDefault := "Access-Control-Allow-Origin Allow Content-Disposition Content-Encoding Content-Language Content-Range Content-Type Etag Last-Modified Link Location Retry-After"
	for name, c := range map[string]struct {
		list []string
		want string
	}{
		"default": {nil, byDefault},
		"none":    {[]string{}, ""},
		"listed":  {[]string{"x-listed", "link"}, "Link X-Listed"},
		"never":   {[]string{"Set-Cookie", "set-cookie2", "WWW-Authenticate", "Authorization", "Age", "Proxy-Authenticate", "Date", "X-Listed"}, "X-Listed"},
	} {
		t.Run(name, func(t *testing.T) {
			site := newSite(t, setup{options: semelhttp.Options{ReplayHeaders: c.list}}, manyHeaders)
			first, again := site.post("k", "hello"), site.post("k", "hello")
			if first.Header.Get("X-Other") != "1" || first.Header.Get("Set-Cookie") != "1" {
				t.Errorf("the first answer has headers %v", first.Header)
			}
			var got []string
			for _, name := range sorted(again.Header) {
				switch name {
				case "Date", "Content-Length", "Idempotent-Replayed", "Cache-Control":
				case "Content-Type":
					if again.Header.Get(name) == "1" { // otherwise the server has guessed it
						got = append(got, name)
					}
				default:
					got = append(got, name)
				}
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("replayed are %s, want %s", s, c.want)
			}
			if c.list == nil && strings.Join(again.Header["Link"], " ") != "1 2" {
				t.Errorf("Link is %v", again.Header["Link"])
			}
		})
	}
}

// Without Content-Range, a partial answer looks like a whole one and a 416 lacks the
// length. Without Allow, a 405 breaks RFC 9110.
func TestReplay_PartialAnd416And405_HaveRequiredHeaders(t *testing.T) {
	for status, h := range map[int][2]string{
		http.StatusPartialContent:               {"Content-Range", "bytes 0-4/11"},
		http.StatusRequestedRangeNotSatisfiable: {"Content-Range", "bytes */11"},
		http.StatusMethodNotAllowed:             {"Allow", "GET, HEAD"},
	} {
		site := newSite(t, setup{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(h[0], h[1])
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "hello")
		})
		site.post("k", "")
		if again := site.post("k", ""); again.StatusCode != status || again.Header.Get("Idempotent-Replayed") == "" || again.Header.Get(h[0]) != h[1] {
			t.Errorf("%d is replayed as %d with %v", status, again.StatusCode, again.Header)
		}
	}
}

func sorted(h http.Header) []string {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestNoStore_Duplicate_GetsStatusOnly(t *testing.T) {
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html") // a default that the handler may replace
			h.ServeHTTP(w, r)
		})
	}
	site := newSite(t, setup{options: semelhttp.Options{NoStore: true}, outer: outer}, manyHeaders)
	site.want(site.post("k", "hello"), 201, "secret")
	a := site.post("k", "hello")
	site.want(a, 201, "")
	for name, want := range map[string]string{
		"Semel-Outcome": "not-kept", "Idempotent-Replayed": "true", "Location": "", "Link": "", "Retry-After": "", "Content-Length": "0",
		"Content-Type": "", "Content-Encoding": "", "Etag": "", "Last-Modified": "", "Content-Language": "", "Content-Disposition": "",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	site.wantRuns(1)
}

func TestAuthorize_Fails_NothingKeptIsShown(t *testing.T) {
	var revoked atomic.Bool
	var asked atomic.Int64
	authorize := func(r *http.Request) error {
		asked.Add(1)
		if revoked.Load() {
			return errors.New("secret: fired yesterday")
		}
		return nil
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		guard   semel.Options
		options semelhttp.Options
	}{
		"an answer":   {manyHeaders, semel.Options{}, semelhttp.Options{}},
		"a tombstone": {manyHeaders, semel.Options{}, semelhttp.Options{NoStore: true}},
		"a failure":   {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, semel.Options{MaxAttempts: 1}, semelhttp.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			revoked.Store(false)
			asked.Store(0)
			c.options.Authorize = authorize
			site := newSite(t, setup{guard: c.guard, options: c.options}, c.handler)
			site.post("k", "hello")
			if asked.Load() != 0 {
				t.Error("asked about an answer that is not a replay")
			}
			if a := site.post("k", "hello"); !a.replayed() || asked.Load() != 1 {
				t.Errorf("asked %d times, got %d", asked.Load(), a.StatusCode)
			}
			revoked.Store(true)
			a := site.post("k", "hello")
			site.want(a, 403, semelhttp.CodeReplayForbidden)
			if strings.Contains(a.body, "secret") || a.Header.Get("Location") != "" || a.replayed() || a.Header.Get("Semel-Outcome") != "" {
				t.Errorf("the refusal tells %q, %v", a.body, a.Header)
			}
		})
	}
}

func TestReplay_ChangedByOuterHandler_RecordStays(t *testing.T) {
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			for _, values := range w.Header() {
				for i := range values {
					values[i] = "changed"
				}
			}
		})
	}
	site := newSite(t, setup{outer: outer}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/7")
		w.WriteHeader(201)
	})
	for range 3 {
		if a := site.post("k", "hello"); a.Header.Get("Location") == "changed" {
			t.Fatal("a kept header was changed")
		}
	}
	if a := site.post("k", "hello"); a.Header.Get("Location") != "/7" {
		t.Errorf("Location is %q", a.Header.Get("Location"))
	}
}

func TestReplay_LargeBody_HasLengthOfFirstAnswer(t *testing.T) {
	body := strings.Repeat("x", 5000) // the server knows the length of a shorter one
	site := newSite(t, setup{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	})
	for i := range 2 {
		if a := site.post("k", "hello"); a.ContentLength != int64(len(body)) || a.replayed() != (i > 0) {
			t.Errorf("answer %d: the length is %d, %v, replayed %v", i, a.ContentLength, a.TransferEncoding, a.replayed())
		}
	}
}

// A guess could make a page of a text that somebody else has chosen.
func TestReplay_TypeNotKept_NoneIsGuessed(t *testing.T) {
	site := newSite(t, setup{options: semelhttp.Options{ReplayHeaders: []string{"Location"}}}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "<html>")
	})
	site.post("k", "hello")
	if a := site.post("k", "hello"); a.body != "<html>" || a.Header.Get("Content-Type") != "" {
		t.Errorf("the replay is %d %q with headers %v", a.StatusCode, a.body, a.Header)
	}
}

// The Semel inside keeps the result of its call, and a later request may get it.
func TestReplay_InnerRefuses_RefusalIsNotKept(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity} {
		runs := 0
		site := newSite(t, setup{}, func(w http.ResponseWriter, _ *http.Request) {
			if runs++; runs == 1 {
				w.Header().Set("Semel-Refusal", semelhttp.CodePayloadMismatch)
				w.WriteHeader(status)
				return
			}
			w.WriteHeader(http.StatusCreated)
		})
		for i, want := range []int{status, http.StatusCreated, http.StatusCreated} {
			if a := site.post("k", "x"); a.StatusCode != want || a.replayed() != (i == 2) {
				t.Errorf("a refusal %d: answer %d is %d, replayed %v; want %d", status, i, a.StatusCode, a.replayed(), want)
			}
		}
	}
}

// If a Semel inside the handler replays an answer without its body, each client of the outer
// one learns that, too. An empty answer would look like the result.
func TestReplay_InnerAnswerNotKept_IsMarked(t *testing.T) {
	for _, final := range []bool{false, true} {
		site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			if final {
				semelhttp.Final(r)
			}
			w.Header().Set("Semel-Outcome", "not-kept")
			w.WriteHeader(http.StatusCreated)
		})
		for i := range 2 {
			if a := site.post("k", "x"); a.StatusCode != http.StatusCreated || a.Header.Get("Semel-Outcome") != "not-kept" || a.replayed() != (i == 1) {
				t.Errorf("final %v, answer %d: %d %v", final, i, a.StatusCode, a.Header)
			}
		}
	}
}
