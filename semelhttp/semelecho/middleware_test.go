package semelecho_test

import (
	"io"
	"maps"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp/semelecho"
	"github.com/semel-go/semel/store/memstore"
)

func start(t *testing.T, run semel.Runner, next func(string) answertest.Answer) string {
	once, err := semelecho.Middleware(run, answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) (err error) {
			defer func() {
				if recover() != nil {
					err = c.NoContent(599)
				}
			}()
			c.SetRequest(c.Request().WithContext(answertest.Endable(c.Request().Context())))
			return next(c)
		}
	})
	e.POST("/pay", func(c *echo.Context) error {
		body, _ := io.ReadAll(c.Request().Body)
		a := next(string(body))
		if a.Mark != nil {
			a.Mark(c.Request())
		}
		switch {
		case a.Panic:
			panic("boom")
		case a.Error:
			return echo.NewHTTPError(a.Status, a.Body)
		case a.Status == 0:
			return nil
		}
		maps.Copy(c.Response().Header(), a.Header)
		if a.Body == "" {
			return c.NoContent(a.Status)
		}
		return c.Blob(a.Status, "text/plain; charset=utf-8", []byte(a.Body))
	}, once)
	return answertest.Serve(t, e)
}

func TestMiddleware_EachAnswer_AsWithNetHTTP(t *testing.T) { answertest.Run(t, start) }

func newGuard(t *testing.T) *semel.Guard {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A plain wrapper keeps an empty 200, because Echo answers the error later.
func TestMiddleware_HandlerReturnsError_NoEmpty200IsKept(t *testing.T) {
	once, err := semelecho.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered, runs := 0, 0
	e := echo.New()
	e.HTTPErrorHandler = func(c *echo.Context, err error) { // does not look whether an answer was sent
		answered++
		_ = c.String(http.StatusPaymentRequired+20, err.Error())
	}
	e.Use(once)
	e.POST("/pay", func(*echo.Context) error { runs++; return io.ErrUnexpectedEOF })
	url := answertest.Serve(t, e)
	for i := range 2 {
		s := answertest.Post(t, url+"/pay", "key", "hello")
		if s.Status != 422 || s.Body != io.ErrUnexpectedEOF.Error() {
			t.Errorf("answer %d: %+v", i, s)
		}
	}
	if answered != 1 || runs != 1 {
		t.Errorf("the error was answered %d times, the handler ran %d times", answered, runs)
	}
}

func TestMiddleware_Misconfigured_IsError(t *testing.T) {
	if _, err := semelecho.Middleware(nil, nil, nil); err == nil {
		t.Error("nil arguments are no error")
	}
}
