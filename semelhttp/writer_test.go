package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A goroutine that a handler leaves behind must not change any later answer.
func TestWriter_GoroutineAfterReturn_ReachesNoRequest(t *testing.T) {
	var left sync.WaitGroup
	answered, stop := make(chan chan struct{}, 1), make(chan struct{})
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body, done := r.Body, make(chan struct{})
		answered <- done
		left.Go(func() {
			<-done
			for {
				select {
				case <-stop:
					return
				default:
				}
				if n, err := w.Write([]byte("late")); n != 0 || err == nil {
					t.Errorf("a late write: %d bytes, error %v", n, err)
				}
				w.WriteHeader(http.StatusTeapot)
				semelhttp.NoEffect(r)
				if n, err := body.Read(make([]byte, 8)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
					t.Errorf("a late read: %d bytes, error %v", n, err)
				}
			}
		})
		_, _ = w.Write(append([]byte("got "), text...))
	})
	const requests = 8 // each leaves a goroutine that never rests
	for i := range requests {
		text := fmt.Sprint("body ", i)
		site.want(site.post(fmt.Sprint("k", i), text), 200, "got "+text)
		close(<-answered)
		site.want(site.post(fmt.Sprint("k", i), text), 200, "got "+text)
	}
	close(stop)
	left.Wait()
	site.wantRuns(requests)
}

func TestWriter_HeaderAfterReturn_IsIgnored(t *testing.T) {
	late := make(chan func(), 1)
	st := &faultyStore{Store: memstore.New(nil), settled: func(store.Settlement) { (<-late)() }} // called after the handler has returned
	site := newSite(t, setup{store: st}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "answer")
		w.Header().Set("X-Sum", "right")
		late <- func() { w.Header().Set("X-Sum", "wrong") }
	})
	a := site.post("k", "hello")
	site.want(a, 200, "answer")
	if got := a.Trailer.Get("X-Sum"); got != "right" {
		t.Errorf("the trailer is %q", got)
	}
}
