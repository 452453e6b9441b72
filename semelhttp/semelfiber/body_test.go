package semelfiber_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel/semelhttp"
)

func paid(c fiber.Ctx) error {
	return c.Status(http.StatusCreated).SendString("paid " + c.FormValue("a"))
}

// multipartBody has the boundary "b". Each part has the type kind.
func multipartBody(kind string) string {
	var b strings.Builder
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		fmt.Fprintf(&b, "--b\r\nContent-Disposition: form-data; name=%q\r\nContent-Type: %s\r\n\r\n1\r\n", name, kind)
	}
	return b.String() + "--b--\r\n"
}

// postForm sends the body with the key "k" and returns the status and the text of the answer.
func postForm(t *testing.T, to, body string, chunked bool) (status int, text string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if chunked {
		r.ContentLength = -1
	}
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// fasthttp writes a parsed form again in the order of a map, so that its bytes differ in
// each repeat.
func TestMiddleware_FormNotPreParsed_RepeatIsDuplicate(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		to, runs := siteWith(t, fiber.Config{DisablePreParseMultipartForm: true, StreamRequestBody: streamed}, paid)
		for range 20 {
			if status, text := postForm(t, to, multipartBody("text/plain"), false); status != http.StatusCreated || text != "paid 1" {
				t.Errorf("streamed %v: the answer is %d %q", streamed, status, text)
			}
		}
		if status, _ := postForm(t, to, multipartBody("text/html"), false); status != http.StatusUnprocessableEntity {
			t.Errorf("streamed %v: a form with another Content-Type of its parts was answered %d, want 422", streamed, status)
		}
		if *runs != 1 {
			t.Errorf("streamed %v: the handler ran %d times, want 1", streamed, *runs)
		}
	}
}

func TestMiddleware_FormPreParsed_IsMisconfigured(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		to, runs := siteWith(t, fiber.Config{StreamRequestBody: streamed}, paid)
		status, text := postForm(t, to, multipartBody("text/plain"), false)
		if status != http.StatusInternalServerError || !strings.Contains(text, semelhttp.CodeMisconfigured) || *runs != 0 {
			t.Errorf("streamed %v: the answer is %d %s, %d runs; want 500 %s and none", streamed, status, text, *runs, semelhttp.CodeMisconfigured)
		}
	}
}

// Fiber does not parse a form without a length before the handler.
func TestMiddleware_FormInChunks_IsDuplicateUnlessStreamed(t *testing.T) {
	to, runs := siteWith(t, fiber.Config{}, paid)
	for range 20 {
		if status, text := postForm(t, to, multipartBody("text/plain"), true); status != http.StatusCreated || text != "paid 1" {
			t.Errorf("the answer is %d %q", status, text)
		}
	}
	if *runs != 1 {
		t.Errorf("the handler ran %d times, want 1", *runs)
	}
	to, runs = siteWith(t, fiber.Config{StreamRequestBody: true}, paid)
	if status, text := postForm(t, to, multipartBody("text/plain"), true); status != http.StatusInternalServerError || !strings.Contains(text, semelhttp.CodeMisconfigured) || *runs != 0 {
		t.Errorf("streamed chunks: the answer is %d %s, %d runs; want 500 %s and none", status, text, *runs, semelhttp.CodeMisconfigured)
	}
}

// sendAndHangUp sends a request, ends its half of the connection, and returns the first
// line of the answer, which is empty if there is none.
func sendAndHangUp(t *testing.T, to string, request []byte) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(c).ReadString('\n') // the server may close without an answer
	return line
}

func TestMiddleware_RequestCutShort_DoesNotRun(t *testing.T) {
	half := bytes.Repeat([]byte("x"), 50_000)
	for _, streamed := range []bool{false, true} {
		to, runs := siteWith(t, fiber.Config{StreamRequestBody: streamed}, func(c fiber.Ctx) error {
			_, err := io.Copy(io.Discard, c.Request().BodyStream())
			return err
		})
		for framing, request := range map[string][]byte{
			"Content-Length: 100000":     half,
			"Transfer-Encoding: chunked": fmt.Appendf(nil, "%x\r\n%s\r\n", len(half), half), // and no last chunk
		} {
			head := "POST /pay HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nIdempotency-Key: k\r\n" + framing + "\r\n\r\n"
			if line := sendAndHangUp(t, to, append([]byte(head), request...)); *runs != 0 || strings.Contains(line, " 20") {
				t.Errorf("streamed %v, %s: the handler ran %d times, the answer is %q", streamed, framing, *runs, line)
			}
		}
	}
}
