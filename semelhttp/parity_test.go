package semelhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// parity lists uses of a http.ResponseWriter. For each, a bare and a protected handler
// must look the same to the client and to the handler.
var parity = map[string]func(w http.ResponseWriter, r *http.Request, note func(...any)){
	"nothing": func(w http.ResponseWriter, r *http.Request, note func(...any)) {},
	"implicit 200": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		note(io.WriteString(w, "hello"))
	},
	"empty write": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		note(w.Write(nil))
		w.WriteHeader(404)
	},
	"double header": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.WriteHeader(202)
		w.WriteHeader(404)
		note(w.Write([]byte("hello")))
	},
	"late headers": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("X-Early", "1")
		w.Header().Set("X-Gone", "1")
		w.WriteHeader(200)
		w.Header().Set("X-Late", "2")
		w.Header().Add("X-Early", "2")
		w.Header().Del("X-Gone")
		note(w.Write([]byte("hello")))
	},
	"204": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.WriteHeader(204)
		_, err := w.Write([]byte("hello"))
		note(errors.Is(err, http.ErrBodyNotAllowed))
	},
	"304": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(304)
		_, err := w.Write([]byte("hello"))
		note(errors.Is(err, http.ErrBodyNotAllowed))
	},
	"exact length": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("Content-Length", "5")
		note(w.Write([]byte("hello")))
	},
	"too long": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("Content-Length", "5")
		note(w.Write([]byte("hello")))
		_, err := w.Write([]byte("!"))
		note(errors.Is(err, http.ErrContentLength))
	},
	"too short": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("Content-Length", "9")
		note(w.Write([]byte("hello")))
	},
	"no length": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("Content-Length", "five")
		note(w.Write([]byte("hello")))
	},
	"no type": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header()["Content-Type"] = nil
		note(w.Write([]byte("<html>")))
	},
	"guessed type": func(w http.ResponseWriter, r *http.Request, note func(...any)) { note(w.Write([]byte("<html>"))) },
	"5000 bytes": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		note(w.Write(bytes.Repeat([]byte("x"), 5000)))
	},
	"pieces": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		for range 1000 {
			note(fmt.Fprintf(w, "%099d\n", 7))
		}
	},
	"copy": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		note(io.Copy(w, strings.NewReader(strings.Repeat("y", 70_000))))
	},
	"error": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		http.Error(w, "no", http.StatusTeapot)
	},
	"redirect": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		http.Redirect(w, r, "/elsewhere", http.StatusSeeOther)
	},
	"content": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader(strings.Repeat("z", 3000)))
	},
	"early hints": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		note(w.Write([]byte("hello")))
	},
	"unknown status": func(w http.ResponseWriter, r *http.Request, note func(...any)) { w.WriteHeader(799) },
	"impossible status": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		defer func() { note(recover() != nil); panic(http.ErrAbortHandler) }()
		w.WriteHeader(9999)
	},
	"trailers": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		w.Header().Set("Trailer", "X-Sum")
		note(w.Write(bytes.Repeat([]byte("x"), 3000)))
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-More", "43")
	},
	"cookies": func(w http.ResponseWriter, r *http.Request, note func(...any)) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.Header().Set("Cache-Control", "private")
		note(w.Write([]byte("hello")))
	},
}

// seen is an answer from the client's view.
type seen struct {
	Status  int
	Header  http.Header
	Body    string
	Length  int64
	Broken  bool
	Trailer http.Header
	Interim []string
}

func observeAnswer(t *testing.T, site *testSite, key string) seen {
	t.Helper()
	var interim []string
	r := site.request(key, "hello")
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			interim = append(interim, fmt.Sprint(code, h["Link"]))
			return nil
		},
	}))
	site.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := site.client.Do(r)
	if err != nil {
		return seen{Broken: true}
	}
	a := readAnswer(resp)
	a.Header.Del("Date")
	return seen{a.StatusCode, a.Header, a.body, a.ContentLength, a.err != nil, a.Trailer, interim}
}

func TestParity_ProtectedAndBare_SameAnswer(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		for name, h := range parity {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				notes := map[bool][]string{}
				handler := func(protected bool) http.HandlerFunc {
					return func(w http.ResponseWriter, r *http.Request) {
						h(w, r, func(v ...any) {
							mu.Lock()
							defer mu.Unlock()
							notes[protected] = append(notes[protected], fmt.Sprint(v...))
						})
					}
				}
				bare := &testSite{t: t}
				bare.serve(handler(false), http2)
				site := newSite(t, setup{http2: http2, options: semelhttp.Options{Judge: keepAll}}, handler(true))
				want, got := observeAnswer(t, bare, ""), observeAnswer(t, site, "k")
				switch {
				case name == "too long" && http2: // bare HTTP/2 breaks off; a protected handler behaves as with HTTP/1.1
					return
				case name == "no length": // the answer is buffered, so its length is known
					got.Length = want.Length
					got.Header.Del("Content-Length")
					want.Header.Del("Content-Length")
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("protected:\n%+v\nbare:\n%+v", got, want)
				}
				mu.Lock()
				defer mu.Unlock()
				if !reflect.DeepEqual(notes[true], notes[false]) {
					t.Errorf("the protected handler saw:\n%v\nthe bare one:\n%v", notes[true], notes[false])
				}
			})
		}
	})
}

// TestReplay_KeptAnswer_EqualsFirst compares the documented parts of a replay.
func TestReplay_KeptAnswer_EqualsFirst(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		for name, h := range parity {
			if name == "impossible status" || name == "too short" {
				continue // not kept
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				site := newSite(t, setup{http2: http2, options: semelhttp.Options{Judge: keepAll}},
					func(w http.ResponseWriter, r *http.Request) { h(w, r, func(...any) {}) })
				first, again := observeAnswer(t, site, "k"), observeAnswer(t, site, "k")
				if again.Header.Get("Idempotent-Replayed") != "true" {
					t.Error("not marked as a replay")
				}
				for _, dropped := range []string{"Set-Cookie", "Cache-Control", "Idempotent-Replayed", "Content-Length", "Accept-Ranges", "X-Early", "X-Gone", "X-Content-Type-Options"} {
					first.Header.Del(dropped)
					again.Header.Del(dropped)
				}
				first.Trailer, first.Interim, first.Length = nil, nil, 0
				again.Trailer, again.Interim, again.Length = nil, nil, 0
				if !reflect.DeepEqual(first, again) {
					t.Errorf("first:\n%+v\nagain:\n%+v", first, again)
				}
				site.wantRuns(1)
			})
		}
	})
}

func TestTrailers_Replay_AreLeftOut(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		site := newSite(t, setup{http2: http2}, func(w http.ResponseWriter, r *http.Request) { parity["trailers"](w, r, func(...any) {}) })
		if a := site.post("k", "hello"); a.Trailer.Get("X-Sum") != "42" {
			t.Errorf("the first answer has trailers %v", a.Trailer)
		}
		if a := site.post("k", "hello"); len(a.Trailer) > 0 || a.Header.Get("X-Sum") != "" || a.Header.Get("Trailer") != "" {
			t.Errorf("the replay has trailers %v, headers %v", a.Trailer, a.Header)
		}
	})
}

func TestReplay_AnswerShorterThanDeclared_IsTombstone(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"too little is written": func(w http.ResponseWriter, r *http.Request) { parity["too short"](w, r, func(...any) {}) },
		"its end is refused": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "hello")
			if _, err := io.WriteString(w, ", world"); !errors.Is(err, http.ErrContentLength) {
				t.Errorf("more than was declared: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := newSite(t, setup{}, h)
			if first := site.post("k", "hello"); first.err == nil {
				t.Error("the first answer is not broken")
			}
			a := site.post("k", "hello")
			site.want(a, 200, "")
			if a.Header.Get("Semel-Outcome") != "not-kept" {
				t.Errorf("the replay has headers %v", a.Header)
			}
			site.wantRuns(1)
		})
	}
}

func TestRefuse_HandlerSetHeaders_AreDropped(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusSwitchingProtocols)
		w.WriteHeader(http.StatusEarlyHints)
	})
	if a := observeAnswer(t, site, "k"); a.Status != 500 || len(a.Interim) > 0 {
		t.Errorf("got %d behind %q", a.Status, a.Interim)
	}
}

func TestHeaders_SetByOuterHandler_Stay(t *testing.T) {
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
			w.Header().Set("X-Default", "outer")
			h.ServeHTTP(w, r)
		})
	}
	site := newSite(t, setup{outer: outer}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("X-Default")
		w.WriteHeader(201)
	})
	for i, id := range []string{"1", "2"} {
		r := site.request("k", "hello")
		r.Header.Set("X-Request-Id", id)
		a := site.do(r)
		if a.Header.Get("X-Request-Id") != id {
			t.Errorf("answer %d has X-Request-Id %q", i, a.Header.Get("X-Request-Id"))
		}
		if (a.Header.Get("X-Default") == "") != (i == 0) { // the handler of the first answer removed it
			t.Errorf("answer %d has X-Default %q", i, a.Header.Get("X-Default"))
		}
	}
}

func TestWriter_WriteAfterReturn_Fails(t *testing.T) {
	type outcome struct {
		n   int
		err error
	}
	late, sent := make(chan outcome, 1), make(chan struct{})
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		go func() {
			<-sent
			w.WriteHeader(500)
			n, err := w.Write([]byte("more"))
			w.(http.Flusher).Flush()
			late <- outcome{n, err}
		}()
	})
	a := site.post("k", "hello")
	close(sent)
	if o := receive(t, late, "the late write"); o.n != 0 || o.err == nil {
		t.Errorf("a late write: %+v", o)
	}
	site.want(a, 200, "hello")
	site.want(site.post("k", "hello"), 200, "hello")
}

func TestWriter_WriteWhileStoring_ChangesNeitherStoredNorSent(t *testing.T) {
	var leaked http.ResponseWriter
	late := errors.New("not tried")
	st := &faultyStore{Store: memstore.New(nil), settle: func(store.Settlement) error {
		_, late = leaked.Write([]byte(" and more")) // a goroutine of the handler writes while the answer is being stored
		return nil
	}}
	site := newSite(t, setup{store: st}, func(w http.ResponseWriter, r *http.Request) {
		leaked = w
		_, _ = io.WriteString(w, "hello")
	})
	for range 2 {
		site.want(site.post("k", "hello"), 200, "hello")
	}
	if late == nil {
		t.Error("a write after the handler's return succeeded")
	}
}

func TestParity_Head_HasNoBody(t *testing.T) {
	once, err := semelhttp.Middleware(newGuard(t, nil, nil), byAccount, &semelhttp.Options{Operation: paymentsOperation, Methods: []string{"HEAD"}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "hello")
	})))
	defer srv.Close()
	for range 2 {
		r, _ := http.NewRequest(http.MethodHead, srv.URL, nil)
		r.Header.Set("Idempotency-Key", "k")
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if a := readAnswer(resp); a.StatusCode != 200 || a.body != "" || a.err != nil || a.Header.Get("Semel-Outcome") != "" {
			t.Errorf("got %d %q, %v, %v", a.StatusCode, a.body, a.err, a.Header)
		}
	}
}
