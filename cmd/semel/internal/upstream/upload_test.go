package upstream_test

import (
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// An upload without a key may take as long as its client does: what has a limit
// is the upstream.
func TestTheTimeOfAnUploadIsNotTheUpstreams(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // it was cut off
		}
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	})
	const limit = 1500 * time.Millisecond
	f := newFront(t, b.URL, nil, limit, nil)
	for path, want := range map[string]int{"/": http.StatusOK, "/silent": http.StatusGatewayTimeout} {
		body, feed := io.Pipe()
		defer body.Close()
		go func() {
			for range 14 {
				<-time.After(limit / 10)
				_, _ = io.WriteString(feed, "part")
			}
			_ = feed.Close()
		}()
		req, err := http.NewRequest(http.MethodPut, f.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if got, err := io.ReadAll(res.Body); res.StatusCode != want || want == http.StatusOK && (err != nil || string(got) != "56") {
			t.Errorf("%s: %s, %q, %v", path, res.Status, got, err)
		}
		if took := time.Since(begin); took < 2*limit && want != http.StatusOK {
			t.Errorf("%s: given up after %v", path, took)
		}
	}
}

// When the answer has begun there is no limit any more, also if the upload goes
// on.
func TestAnUploadThatGoesOnBesideTheAnswerHasNoLimit(t *testing.T) {
	const limit = 500 * time.Millisecond
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, 4))
		_, _ = io.WriteString(w, "begun ")
		_ = c.Flush()
		rest, err := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, string(rest)+" "+strconv.FormatBool(err == nil))
	})
	f := newFront(t, b.URL, nil, limit, nil)
	body, feed := io.Pipe()
	defer body.Close()
	begun := make(chan struct{})
	go func() {
		defer feed.Close()
		_, _ = io.WriteString(feed, "part")
		select {
		case <-begun:
		case <-time.After(20 * limit): // it does not begin while something is to come
			return
		}
		_, _ = io.WriteString(feed, "more")
		<-time.After(3 * limit)
	}()
	req, err := http.NewRequest(http.MethodPut, f.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("begun "))
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	close(begun)
	if got, err := io.ReadAll(res.Body); err != nil || string(first)+string(got) != "begun more true" {
		t.Errorf("got %q, %v", got, err)
	}
}
