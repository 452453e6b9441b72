package semelfiber_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semelhttp/semelfiber"
)

func siteWith(t *testing.T, config fiber.Config, handler fiber.Handler) (url string, runs *int) {
	once, err := semelfiber.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	runs = new(int)
	app := newApp(config)
	app.Post("/pay", once, func(c fiber.Ctx) error { *runs++; return handler(c) })
	return serve(t, app) + "/pay", runs
}

func TestMiddleware_Stream_IsReadAndKept(t *testing.T) {
	url, runs := siteWith(t, fiber.Config{}, func(c fiber.Ctx) error {
		return c.Status(201).SendStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("one ")
			_ = w.Flush()
			_, _ = w.WriteString("two")
		})
	})
	for range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "one two" {
			t.Errorf("got %+v", s)
		}
	}
	if *runs != 1 {
		t.Errorf("the handler ran %d times", *runs)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestMiddleware_StreamBreaks_IsNotKept(t *testing.T) {
	url, runs := siteWith(t, fiber.Config{}, func(c fiber.Ctx) error {
		return c.SendStream(io.MultiReader(strings.NewReader("half"), failingReader{}))
	})
	for range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != http.StatusBadGateway || strings.Contains(s.Body, "half") {
			t.Errorf("got %+v", s)
		}
	}
	if *runs != 2 {
		t.Errorf("the handler ran %d times", *runs)
	}
}

// Without Semel, Fiber closes the connection of the client.
func TestMiddleware_StreamHasOtherLength_IsNotKept(t *testing.T) {
	for _, declared := range []int{1000, 2} {
		url, runs := siteWith(t, fiber.Config{}, func(c fiber.Ctx) error {
			return c.Status(201).SendStream(strings.NewReader("half"), declared)
		})
		for range 2 {
			if s := answertest.Post(t, url, "key", "hello"); s.Status != http.StatusBadGateway || strings.Contains(s.Body, "half") {
				t.Errorf("4 bytes of %d: got %+v", declared, s)
			}
		}
		if *runs != 2 {
			t.Errorf("4 bytes of %d: the handler ran %d times, want 2", declared, *runs)
		}
	}
	url, runs := siteWith(t, fiber.Config{}, func(c fiber.Ctx) error { return c.Status(201).SendStream(strings.NewReader("whole"), 5) })
	for range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "whole" {
			t.Errorf("5 bytes of 5: got %+v", s)
		}
	}
	if *runs != 1 {
		t.Errorf("5 bytes of 5: the handler ran %d times, want 1", *runs)
	}
}

// Fiber guesses no type, so neither the answer nor its replay has one.
func TestMiddleware_AnswerWithoutType_NoneIsGuessed(t *testing.T) {
	url, _ := siteWith(t, fiber.Config{}, func(c fiber.Ctx) error {
		c.Response().Header.SetNoDefaultContentType(true)
		return c.Status(201).SendString("<html>")
	})
	for i := range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Header.Get("Content-Type") != "" {
			t.Errorf("answer %d: got %+v", i, s)
		}
	}
}

func TestMiddleware_Hijack_IsRefused(t *testing.T) {
	url, _ := siteWith(t, fiber.Config{}, func(c fiber.Ctx) error {
		c.RequestCtx().Hijack(func(net.Conn) { t.Error("the connection was hijacked") })
		return c.SendString("hello")
	})
	if s := answertest.Post(t, url, "key", "hello"); s.Status != 500 || !strings.Contains(s.Body, semelhttp.CodeUpgradeUnsupported) {
		t.Errorf("got %+v", s)
	}
}
