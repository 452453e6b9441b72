package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

func TestPanic_BeforeAnswer_IsDoubtAndGoesOn(t *testing.T) {
	for policy, want := range map[semel.Policy]int{semel.Retry: 200, semel.Park: 409} {
		for _, value := range []any{"boom", http.ErrAbortHandler} {
			t.Run(fmt.Sprint(policy, value), func(t *testing.T) {
				var recovered []any
				outer := func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						defer func() {
							if v := recover(); v != nil {
								recovered = append(recovered, v)
								w.WriteHeader(599) // nothing was sent yet
							}
						}()
						h.ServeHTTP(w, r)
					})
				}
				broken := true
				site := newSite(t, setup{guard: semel.Options{OnDoubt: policy}, outer: outer}, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, "half")
					if broken {
						panic(value)
					}
				})
				site.want(site.post("k", "hello"), 599, "")
				if len(recovered) != 1 || recovered[0] != value {
					t.Errorf("recovered %v", recovered)
				}
				broken = false
				if a := site.post("k", "hello"); a.StatusCode != want {
					t.Errorf("the next request got %d %s, want %d", a.StatusCode, a.body, want)
				}
			})
		}
	}
}

func TestPanic_AfterFlush_BreaksAnswerOff(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		site := newSite(t, setup{http2: http2, guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		if a := site.post("k", "hello"); a.err == nil {
			t.Errorf("the first answer looks whole: %q", a.body)
		}
		a := site.post("k", "hello") // the tombstone was stored before the stream began
		site.want(a, 200, "")
		if a.Header.Get("Semel-Outcome") != "not-kept" {
			t.Errorf("headers %v", a.Header)
		}
		site.wantRuns(1)
	})
}

func TestWriter_HijackOrUpgrade_IsRefused(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		_, _, err := http.NewResponseController(w).Hijack()
		_, _, err2 := w.(http.Hijacker).Hijack()
		if !errors.Is(err, http.ErrNotSupported) || !errors.Is(err2, http.ErrNotSupported) {
			t.Errorf("hijack: %v, %v", err, err2)
		}
		_, _ = io.WriteString(w, "went on")
	})
	site.want(site.post("k", "hello"), 200, "went on")

	for policy, code := range map[semel.Policy]string{semel.Retry: semelhttp.CodeUpgradeUnsupported, semel.Park: semelhttp.CodeOutcomeUnknown} {
		site := newSite(t, setup{guard: semel.Options{OnDoubt: policy}}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
			if _, err := io.WriteString(w, "frames"); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("write: %v", err)
			}
			if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("flush: %v", err)
			}
		})
		r := site.request("k", "hello")
		a := site.do(r)
		if a.code() != code || a.Header.Get("Upgrade") != "" {
			t.Errorf("%v: got %d %s, %v", policy, a.StatusCode, a.body, a.Header)
		}
	}
}

var farAway = time.Now().Add(time.Hour)

func TestWriter_ResponseController_ReachesServer(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		site := newSite(t, setup{http2: http2}, func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			if err := errors.Join(c.SetReadDeadline(farAway), c.SetWriteDeadline(farAway), c.EnableFullDuplex()); err != nil {
				t.Error(err)
			}
			w.WriteHeader(200)
		})
		site.want(site.post("k", "hello"), 200, "")
	})
}
