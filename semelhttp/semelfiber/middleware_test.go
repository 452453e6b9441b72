package semelfiber_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp/semelfiber"
	"github.com/semel-go/semel/store/memstore"
)

func serve(t *testing.T, app *fiber.App) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		_ = ln.Close()
		<-ended
	})
	return "http://" + ln.Addr().String()
}

func newApp(config fiber.Config) *fiber.App {
	app := fiber.New(config)
	app.Use(func(c fiber.Ctx) (err error) {
		defer func() {
			if recover() != nil {
				c.Response().Reset()
				c.Response().Header.SetNoDefaultContentType(true)
				c.Status(599)
			}
		}()
		c.SetContext(answertest.Endable(c.Context()))
		return c.Next()
	})
	return app
}

func startWith(config fiber.Config) answertest.Start {
	return func(t *testing.T, run semel.Runner, next func(string) answertest.Answer) string {
		once, err := semelfiber.Middleware(run, answertest.Tenant, nil)
		if err != nil {
			t.Fatal(err)
		}
		app := newApp(config)
		app.Post("/pay", once, func(c fiber.Ctx) error {
			a := next(string(c.Body()))
			if a.Mark != nil {
				a.Mark(semelfiber.Request(c))
			}
			switch {
			case a.Panic:
				panic("boom")
			case a.Error:
				return fiber.NewError(a.Status, a.Body)
			case a.Status == 0:
				return nil
			}
			for name, values := range a.Header {
				for _, v := range values {
					c.Response().Header.Add(name, v)
				}
			}
			c.Response().Header.SetNoDefaultContentType(true)
			if a.Body != "" {
				c.Set("Content-Type", "text/plain; charset=utf-8")
			}
			return c.Status(a.Status).SendString(a.Body)
		})
		return serve(t, app)
	}
}

func TestMiddleware_EachAnswer_AsWithNetHTTP(t *testing.T) {
	answertest.RunOneWay(t, startWith(fiber.Config{}))
}

func TestMiddleware_RequestBodyIsStream_AsWithNetHTTP(t *testing.T) {
	answertest.RunOneWay(t, startWith(fiber.Config{StreamRequestBody: true}))
}

func newGuard(t *testing.T) *semel.Guard {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The adaptor of Fiber keeps an empty 200, because Fiber answers the error later.
func TestMiddleware_HandlerReturnsError_NoEmpty200IsKept(t *testing.T) {
	once, err := semelfiber.Middleware(newGuard(t), answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered, runs := 0, 0
	app := newApp(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
		answered++
		return c.Status(http.StatusUnprocessableEntity).SendString(err.Error())
	}})
	app.Post("/pay", once, func(fiber.Ctx) error { runs++; return fiber.ErrTeapot })
	url := serve(t, app)
	for i := range 2 {
		s := answertest.Post(t, url+"/pay", "key", "hello")
		if s.Status != 422 || s.Body != fiber.ErrTeapot.Message {
			t.Errorf("answer %d: %+v", i, s)
		}
	}
	if answered != 1 || runs != 1 {
		t.Errorf("the error was answered %d times, the handler ran %d times", answered, runs)
	}
}

func TestMiddleware_TenantFromContext_SeparatesAccounts(t *testing.T) {
	tenant := func(r *http.Request) (string, error) { return semelfiber.Context(r).Query("account"), nil }
	once, err := semelfiber.Middleware(newGuard(t), tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	app := newApp(fiber.Config{})
	app.Post("/pay", once, func(c fiber.Ctx) error { runs++; return c.SendString(c.Query("account")) })
	url := serve(t, app)
	for range 2 {
		for _, account := range []string{"ann", "bob", "cat"} {
			if s := answertest.Post(t, url+"/pay?account="+account, "key", "hello"); s.Status != 200 || s.Body != account {
				t.Errorf("%s: got %+v", account, s)
			}
		}
	}
	if runs != 3 {
		t.Errorf("the handler ran %d times, want 3", runs)
	}
}

func TestMiddleware_Misconfigured_IsError(t *testing.T) {
	if _, err := semelfiber.Middleware(nil, nil, nil); err == nil {
		t.Error("nil arguments are no error")
	}
}
