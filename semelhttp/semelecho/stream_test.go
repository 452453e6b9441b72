package semelecho_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semelhttp/semelecho"
	"github.com/semel-go/semel/store/memstore"
)

func TestMiddleware_FlushAndHijack_AsWithNetHTTP(t *testing.T) {
	once, err := semelecho.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.POST("/pay", func(c *echo.Context) error {
		control := http.NewResponseController(c.Response())
		if _, _, err := control.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
		_ = c.String(201, "one ")
		if err := control.Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		_, err := c.Response().Write([]byte("two"))
		return err
	}, once)
	url := answertest.Serve(t, e) + "/pay"
	if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "one two" {
		t.Errorf("got %+v", s)
	}
	if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "" || s.Header.Get("Semel-Outcome") != "not-kept" {
		t.Errorf("the duplicate got %+v", s)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// An answer and an error contradict each other, so the answer is not kept.
func TestMiddleware_ErrorAfterAnswer_CallIsInDoubt(t *testing.T) {
	commit := errors.New("the commit failed")
	for name, answer := range map[string]echo.HandlerFunc{
		"stream breaks": func(c *echo.Context) error {
			return c.Stream(200, "text/csv", io.MultiReader(strings.NewReader("half"), failingReader{}))
		},
		"stream breaks, and the handler says so": func(c *echo.Context) error {
			err := c.Stream(200, "text/csv", io.MultiReader(strings.NewReader("half"), failingReader{}))
			semelhttp.Broken(c.Request())
			return err
		},
		"rows break": func(c *echo.Context) error {
			_, _ = io.WriteString(c.Response(), "half")
			return io.ErrUnexpectedEOF
		},
		"commit fails":          func(c *echo.Context) error { return errors.Join(c.String(201, "half"), commit) },
		"commit fails, no body": func(c *echo.Context) error { return errors.Join(c.NoContent(204), commit) },
		"the request's context ends": func(c *echo.Context) error {
			ctx, cancel := context.WithCancel(c.Request().Context())
			cancel()
			return errors.Join(c.String(200, "half"), ctx.Err())
		},
	} {
		for policy, want := range map[semel.Policy]int{semel.Retry: 2, semel.Park: 1} {
			t.Run(name+", "+policy.String(), func(t *testing.T) {
				guard, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: policy})
				if err != nil {
					t.Fatal(err)
				}
				url, runs := siteWith(t, guard, answer)
				if s := answertest.Post(t, url, "key", "hello"); s.Status != 500 || !strings.Contains(s.Body, "Internal Server Error") || (s.Header.Get("Semel-Outcome") == "unknown") != (policy == semel.Park) {
					t.Errorf("got %+v", s)
				}
				if s := answertest.Post(t, url, "key", "hello"); s.Status < 400 || strings.Contains(s.Body, "half") || s.Header.Get("Idempotent-Replayed") != "" {
					t.Errorf("the duplicate got %+v", s)
				}
				if *runs != want {
					t.Errorf("the handler ran %d times, want %d", *runs, want)
				}
			})
		}
	}
}

// siteWith serves a protected handler, and counts its runs.
func siteWith(t *testing.T, guard *semel.Guard, answer echo.HandlerFunc) (url string, runs *int) {
	t.Helper()
	once, err := semelecho.Middleware(guard, answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	runs = new(int)
	e := echo.New()
	e.POST("/pay", func(c *echo.Context) error { *runs++; return answer(c) }, once)
	return answertest.Serve(t, e) + "/pay", runs
}

// Without Semel the client gets the 204, and Echo logs the error.
func TestMiddleware_StatusAllowsNoBody_AnswerIsKept(t *testing.T) {
	for name, answer := range map[string]echo.HandlerFunc{
		"JSON":   func(c *echo.Context) error { return c.JSON(204, "paid") },
		"string": func(c *echo.Context) error { return c.String(204, "paid") },
		"blob":   func(c *echo.Context) error { return c.Blob(304, "text/plain", []byte("paid")) },
	} {
		url, runs := siteWith(t, newGuard(t), answer)
		first, second := answertest.Post(t, url, "key", "hello"), answertest.Post(t, url, "key", "hello")
		if first.Status >= 400 || second.Status != first.Status || *runs != 1 {
			t.Errorf("%s: got %+v and %+v after %d runs", name, first, second, *runs)
		}
	}
}

// A part of the answer is sent, so "done" is stored already.
func TestMiddleware_ErrorAfterFlush_IsKeptWithoutBody(t *testing.T) {
	url, runs := siteWith(t, newGuard(t), func(c *echo.Context) error {
		_ = c.String(201, "half")
		return errors.Join(http.NewResponseController(c.Response()).Flush(), io.ErrUnexpectedEOF)
	})
	for i := range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || (s.Header.Get("Semel-Outcome") == "not-kept") != (i == 1) {
			t.Errorf("got %+v", s)
		}
	}
	if *runs != 1 {
		t.Errorf("the handler ran %d times", *runs)
	}
}

// A middleware inside answers an error, and returns it for a logger.
func TestMiddleware_ErrorAfterErrorAnswer_AnswerIsKept(t *testing.T) {
	url, runs := siteWith(t, newGuard(t), func(c *echo.Context) error {
		return errors.Join(c.JSON(422, "declined"), errors.New("the card was declined"))
	})
	for range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 422 || !strings.Contains(s.Body, "declined") {
			t.Errorf("got %+v", s)
		}
	}
	if *runs != 1 {
		t.Errorf("the handler ran %d times", *runs)
	}
}

// The error of an unprotected request goes to the outer middleware, as without Semel.
func TestMiddleware_MethodNotProtected_ErrorGoesOn(t *testing.T) {
	once, err := semelecho.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	var outer error
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { outer = next(c); return outer }
	})
	e.GET("/pay", func(*echo.Context) error { return echo.ErrForbidden }, once)
	res, err := http.Get(answertest.Serve(t, e) + "/pay")
	if err != nil {
		t.Fatal(err)
	}
	if _ = res.Body.Close(); res.StatusCode != 403 || !errors.Is(outer, echo.ErrForbidden) {
		t.Errorf("got %d, the outer middleware saw %v", res.StatusCode, outer)
	}
}

// Final and NoEffect count for more than an error after the answer.
func TestMiddleware_ErrorAfterMarkedAnswer_MarkCounts(t *testing.T) {
	for name, c := range map[string]struct {
		mark   func(*http.Request)
		status int
		runs   int
	}{
		"final":     {semelhttp.Final, 201, 1},
		"no effect": {semelhttp.NoEffect, 200, 2},
	} {
		for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
			t.Run(name+", "+policy.String(), func(t *testing.T) {
				guard, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: policy})
				if err != nil {
					t.Fatal(err)
				}
				url, runs := siteWith(t, guard, func(e *echo.Context) error {
					c.mark(e.Request())
					return errors.Join(e.String(c.status, "said"), errors.New("the mail was not sent"))
				})
				for range 2 {
					if s := answertest.Post(t, url, "key", "hello"); s.Status != c.status || s.Body != "said" {
						t.Errorf("got %+v", s)
					}
				}
				if *runs != c.runs {
					t.Errorf("the handler ran %d times, want %d", *runs, c.runs)
				}
			})
		}
	}
}
