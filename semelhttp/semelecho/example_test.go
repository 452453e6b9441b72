package semelecho_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/labstack/echo/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp/semelecho"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleMiddleware() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	account := func(r *http.Request) (string, error) {
		name, _ := semelecho.Context(r).Get("account").(string)
		return name, nil
	}
	once, err := semelecho.Middleware(guard, account, nil)
	if err != nil {
		panic(err)
	}
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set("account", "ann") // stands for authentication
			return next(c)
		}
	})
	payments := 0
	e.POST("/payments", func(*echo.Context) error {
		payments++
		return echo.NewHTTPError(http.StatusUnprocessableEntity, fmt.Sprint("card declined, try ", payments))
	}, once)
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "7f3c")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 422 {"message":"card declined, try 1"}
	// 422 {"message":"card declined, try 1"}
}
