package semelhttp_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// compressing is an outer handler like gin-contrib/gzip: it sets the headers before the
// inner handler runs.
func compressing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if r.Header.Get("Origin") != "" {
			w.Header().Add("Vary", "Origin")
		}
		if r.Header.Get("Accept-Encoding") != "gzip" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		next.ServeHTTP(&zipped{w, z}, r)
	})
}

type zipped struct {
	http.ResponseWriter
	z io.Writer
}

func (w *zipped) Write(p []byte) (int, error) { return w.z.Write(p) }

// Each client gets the encoding that it takes, in whatever order they come.
func TestReplay_OuterHandlerCompresses_EachClientCanReadIt(t *testing.T) {
	paid := strings.Repeat("paid ", 1000) // a length of the plain body would be wrong
	for _, order := range [][]string{{"gzip", "identity", "gzip"}, {"identity", "gzip", "identity"}} {
		site := newSite(t, setup{outer: compressing}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept-Language")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, paid)
		})
		for i, encoding := range order {
			r := site.request("k", "hello")
			r.Header.Set("Accept-Encoding", encoding)
			if i == 2 {
				r.Header.Set("Origin", "https://a.example")
			}
			a := site.do(r)
			body := a.body
			if a.Header.Get("Content-Encoding") == "gzip" {
				z, err := gzip.NewReader(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				plain, err := io.ReadAll(z)
				if err != nil {
					t.Error(err)
				}
				body = string(plain)
			}
			if compressed := body != a.body; compressed != (encoding == "gzip") || body != paid || a.replayed() != (i > 0) {
				t.Errorf("request %d of %v: headers %v, body %q", i+1, order, a.Header, body)
			}
			vary := strings.Join(a.Header.Values("Vary"), ", ")
			if want := map[bool]string{false: "Accept-Encoding, Accept-Language", true: "Accept-Encoding, Origin, Accept-Language"}[i == 2]; vary != want {
				t.Errorf("request %d of %v: Vary is %q, want %q", i+1, order, vary, want)
			}
		}
		site.wantRuns(1)
	}
}

// An encoding of the handler's own is a part of its answer.
func TestReplay_HandlerCompresses_EncodingIsKept(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "zipped")
	})
	for range 2 {
		if a := site.post("k", "hello"); a.Header.Get("Content-Encoding") != "br" || a.body != "zipped" {
			t.Errorf("headers %v, body %q", a.Header, a.body)
		}
	}
}
