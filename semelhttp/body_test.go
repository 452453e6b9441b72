package semelhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

func TestBody_AnySize_HandlerReadsAll(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		dir := t.TempDir()
		site := newSite(t, setup{http2: http2, options: semelhttp.Options{TempDir: dir}}, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil || int64(len(b)) != r.ContentLength || len(r.TransferEncoding) > 0 {
				t.Errorf("read %d bytes of %d, %v, %v", len(b), r.ContentLength, r.TransferEncoding, err)
			}
			_, _ = io.WriteString(w, fmt.Sprint(len(b), strings.Trim(string(b), "x") == ""))
		})
		for _, size := range []int{0, 1, 62, 511, 512, 513, 8191, 8192, 8193, 65535, 65536, 65537, 65538, 200_000, 1 << 20} {
			key := strconv.Itoa(size)
			want := fmt.Sprint(size, true)
			site.want(site.post(key, strings.Repeat("x", size)), 200, want)
			r := site.request(key, "")
			r.Body, r.ContentLength, r.GetBody = io.NopCloser(iotest{strings.NewReader(strings.Repeat("x", size))}), -1, nil
			a := site.do(r) // the same bytes with an unknown length are the same payload
			site.want(a, 200, want)
			if !a.replayed() {
				t.Errorf("%d bytes in chunks are another payload than with a length", size)
			}
		}
		wantEmpty(t, dir)
	})
}

// iotest gives short reads.
type iotest struct{ r io.Reader }

func (o iotest) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 7777)]) }

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 0 {
		t.Errorf("left in the directory for temporary files: %v, %v", files, err)
	}
}

func TestBody_OverLimit_RefusedBeforeClaim(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		for _, limit := range []int{10, 100_000} {
			dir := t.TempDir()
			site := newSite(t, setup{http2: http2, options: semelhttp.Options{MaxBody: int64(limit), TempDir: dir}}, echo)
			for _, length := range []int64{int64(limit) + 1, -1} {
				r := site.request("k", "")
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", limit+1))), length
				a := site.do(r)
				site.want(a, 413, semelhttp.CodeBodyTooLarge)
				if !strings.Contains(a.body, strconv.Itoa(limit)) {
					t.Errorf("the limit is not named: %s", a.body)
				}
			}
			site.wantRuns(0)
			body := strings.Repeat("x", limit)
			site.want(site.post("k", body), 201, "you said "+body) // the key is free
			wantEmpty(t, dir)
		}
	})
}

func TestBody_OverOuterLimit_Is413(t *testing.T) {
	site := newSite(t, setup{outer: func(h http.Handler) http.Handler { return http.MaxBytesHandler(h, 4) }}, echo)
	a := site.post("k", "hello")
	site.want(a, 413, semelhttp.CodeBodyTooLarge)
	if !strings.Contains(a.body, "the limit of 4 bytes") {
		t.Errorf("the limit that counts is not named: %s", a.body)
	}
	site.wantRuns(0)
}

func TestBody_ReadByOuterHandler_IsMisconfigured(t *testing.T) {
	site := newSite(t, setup{outer: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			h.ServeHTTP(w, r)
		})
	}}, echo)
	site.want(site.post("k", "hello"), 500, semelhttp.CodeMisconfigured)
	site.wantRuns(0)
}

// If an outer handler has parsed a form of unknown length, only the form fields show
// that there was a body. Without a check, any two forms would be the same payload.
func TestBody_FormParsedByOuterHandler_IsMisconfigured(t *testing.T) {
	for name, parse := range map[string]func(*http.Request) error{
		"a form":            (*http.Request).ParseForm,
		"a multipart form":  func(r *http.Request) error { return r.ParseMultipartForm(1 << 20) },
		"a multipart field": func(r *http.Request) error { _ = r.PostFormValue("amount"); return nil },
	} {
		site := newSite(t, setup{outer: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := parse(r); err != nil {
					t.Error(err)
				}
				h.ServeHTTP(w, r)
			})
		}}, echo)
		r := site.request("k", "amount=1")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if name != "a form" {
			r = site.request("k", "--b\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n1\r\n--b--\r\n")
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		}
		r.ContentLength = -1
		site.want(site.do(r), 500, semelhttp.CodeMisconfigured)
		site.wantRuns(0)
		r = site.request("k2", "")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if name == "a form" {
			site.want(site.do(r), 201, "you said ") // the form was empty
		}
	}
}

func TestBody_CutShort_LeavesNoRecord(t *testing.T) {
	dir := t.TempDir()
	site := newSite(t, setup{options: semelhttp.Options{TempDir: dir}}, echo)
	for _, sent := range []int{0, 10, 100_000} {
		c := dial(t, site.url)
		fmt.Fprintf(c, "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("x", sent))
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		reply, err := io.ReadAll(c)
		if err != nil || !bytes.HasPrefix(reply, []byte("HTTP/1.1 400")) || !bytes.Contains(reply, []byte(semelhttp.CodeBodyUnreadable)) {
			t.Errorf("%d bytes sent: %q, %v", sent, reply, err)
		}
	}
	site.wantRuns(0)
	site.want(site.post("k", "hello"), 201, "you said hello")
	wantEmpty(t, dir)
}

func dial(t *testing.T, url string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBody_ExpectContinue_AskedOnlyIfAccepted(t *testing.T) {
	site := newSite(t, setup{}, echo)
	c := dial(t, site.url)
	fmt.Fprint(c, "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	buf := make([]byte, 1000)
	n, err := c.Read(buf)
	if got := string(buf[:n]); err != nil || !strings.HasPrefix(got, "HTTP/1.1 100 Continue") {
		t.Fatalf("got %q, %v; want to be told to go on", got, err)
	}
	fmt.Fprint(c, "hello")
	n, err = c.Read(buf)
	if got := string(buf[:n]); err != nil || !strings.HasPrefix(got, "HTTP/1.1 201") {
		t.Errorf("got %q, %v", got, err)
	}
	// The server does not ask for the body of a refused request.
	for _, head := range []string{"Content-Length: 5", "Idempotency-Key: a, b\r\nContent-Length: 5", "Idempotency-Key: k2\r\nContent-Length: 99999999"} {
		c := dial(t, site.url)
		fmt.Fprintf(c, "POST /pay HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n%s\r\n\r\n", head)
		n, err := c.Read(buf)
		if got := string(buf[:n]); err != nil || !strings.HasPrefix(got, "HTTP/1.1 4") {
			t.Errorf("%s: got %q, %v", head, got, err)
		}
	}
	site.wantRuns(1)
}

func TestBody_HandlerDoesNotRead_AnswersAll(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		site := newSite(t, setup{http2: http2}, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "done") })
		for i := range 4 {
			site.want(site.post(strconv.Itoa(i/2), strings.Repeat("x", 300_000)), 200, "done")
		}
		site.wantRuns(2)
	})
}

func TestBody_HandlerReturned_IsClosed(t *testing.T) {
	for _, size := range []int{5, 100_000} {
		late := make(chan error, 1)
		returned := make(chan struct{})
		site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
			go func() {
				<-returned
				_, err := r.Body.Read(make([]byte, 10))
				late <- err
			}()
		})
		site.post("k", strings.Repeat("x", size))
		close(returned)
		if err := receive(t, late, "the late read"); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("%d bytes: a read after the handler's return gets %v", size, err)
		}
	}
}

func TestBody_HandlerPanics_RemovesFile(t *testing.T) {
	dir := t.TempDir()
	open := make(chan io.Reader, 1)
	site := newSite(t, setup{options: semelhttp.Options{TempDir: dir}}, func(w http.ResponseWriter, r *http.Request) {
		open <- r.Body
		panic("boom")
	})
	if _, err := site.client.Do(site.request("k", strings.Repeat("x", 100_000))); err == nil {
		t.Fatal("the panic did not reach the server")
	}
	if _, err := (<-open).Read(make([]byte, 10)); err == nil {
		t.Error("the spool is still open")
	}
	wantEmpty(t, dir)
}

func TestBody_MultipartForm_LeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, err := m.CreateFormFile("file", "big.bin")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(bytes.Repeat([]byte("x"), 200_000))
	_ = m.Close()
	// A repeated transaction parses a form in each run.
	repeated := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		return g.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if _, err := fn(ctx, x); err != nil {
				return store.Outcome{}, err
			}
			return fn(ctx, x)
		})
	})
	for runs, s := range map[int64]setup{1: {}, 2: {runner: repeated.with(newGuard(t, nil, nil))}} {
		site := newSite(t, s, func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1000); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, strconv.FormatInt(r.MultipartForm.File["file"][0].Size, 10))
		})
		for range 2 {
			r := site.request("k", form.String())
			r.Header.Set("Content-Type", m.FormDataContentType())
			site.want(site.do(r), 200, "200000")
		}
		site.wantRuns(runs)
		wantEmpty(t, dir)
	}
}

func TestBody_NoSpace_IsServerProblem(t *testing.T) {
	site := newSite(t, setup{options: semelhttp.Options{TempDir: t.TempDir() + "/missing"}}, echo)
	a := site.post("k", strings.Repeat("x", 100_000))
	site.want(a, 503, semelhttp.CodeSpoolUnavailable)
	if strings.Contains(a.body, "missing") || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %s, %v", a.body, a.Header)
	}
	site.want(site.post("k", "small"), 201, "you said small")
}

func TestBody_None_HandlerRuns(t *testing.T) {
	once, err := semelhttp.Middleware(newGuard(t, nil, nil), byAccount, payments(nil))
	if err != nil {
		t.Fatal(err)
	}
	h := once(http.HandlerFunc(echo))
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/pay", nil)
		r.Body = nil
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 201 || w.Body.String() != "you said " {
			t.Errorf("got %d %q", w.Code, w.Body)
		}
	}
}
