package semelecho_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semelhttp/semelecho"
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

// A handler says that its answer is not whole.
func TestMiddleware_StreamBreaks_IsNotKept(t *testing.T) {
	once, err := semelecho.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	e := echo.New()
	e.POST("/pay", func(c *echo.Context) error {
		runs++
		err := c.Stream(200, "text/csv", io.MultiReader(strings.NewReader("half"), failingReader{}))
		if err != nil {
			semelhttp.Broken(c.Request())
		}
		return err
	}, once)
	url := answertest.Serve(t, e) + "/pay"
	for range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 500 || strings.Contains(s.Body, "half") {
			t.Errorf("got %+v", s)
		}
	}
	if runs != 2 {
		t.Errorf("the handler ran %d times", runs)
	}
}

// An error after a whole answer, of the handler or of a middleware inside, changes nothing.
func TestMiddleware_ErrorAfterAnswer_AnswerIsKept(t *testing.T) {
	once, err := semelecho.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{201, 422} {
		runs := 0
		e := echo.New()
		e.POST("/pay", func(c *echo.Context) error {
			runs++
			return errors.Join(c.JSON(status, "paid"), errors.New("the mail was not sent"))
		}, once)
		url := answertest.Serve(t, e) + "/pay"
		for range 2 {
			if s := answertest.Post(t, url, fmt.Sprint("key-", status), "hello"); s.Status != status || !strings.Contains(s.Body, "paid") {
				t.Errorf("got %+v", s)
			}
		}
		if runs != 1 {
			t.Errorf("status %d: the handler ran %d times", status, runs)
		}
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
