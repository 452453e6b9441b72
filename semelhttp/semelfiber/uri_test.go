package semelfiber_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semelhttp/semelfiber"
)

// Fiber serves paths that net/url cannot parse.
func TestMiddleware_OddPath_OnlyProtectedRequestIsRefused(t *testing.T) {
	once, err := semelfiber.Middleware(newGuard(t), answertest.Tenant, &semelhttp.Options{Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	app, runs := fiber.New(), 0
	app.Use(once)
	app.All("/files/*", func(c fiber.Ctx) error { runs++; return c.SendString(c.Params("*") + string(c.Body())) })
	addr := strings.TrimPrefix(serve(t, app), "http://")
	for _, c := range []struct {
		line, header string
		status, runs int
	}{
		{"GET /files/a", "", 200, 1},
		{"GET /files/100%", "", 200, 2},
		{"GET /files/a%zz?b=%", "Idempotency-Key: k\r\n", 200, 3},
		{"POST /files/100%", "", 200, 4},
		{"POST /files/100%", "Idempotency-Key: k\r\n", 400, 4},
		{"POST /files/100%25", "Idempotency-Key: k\r\n", 200, 5},
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n%sConnection: close\r\n\r\nhello", c.line, c.header)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.status || runs != c.runs {
			t.Errorf("%s %s: got %d after %d runs, want %d after %d", c.line, c.header, res.StatusCode, runs, c.status, c.runs)
		}
		_ = conn.Close()
	}
}
