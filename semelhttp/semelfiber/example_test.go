package semelfiber_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp/semelfiber"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleMiddleware() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	account := func(r *http.Request) (string, error) {
		name, _ := semelfiber.Context(r).Locals("account").(string)
		return name, nil
	}
	once, err := semelfiber.Middleware(guard, account, nil)
	if err != nil {
		panic(err)
	}
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		c.Locals("account", "ann") // stands for authentication
		return c.Next()
	})
	payments := 0
	app.Post("/payments", once, func(fiber.Ctx) error {
		payments++
		return fiber.NewError(http.StatusUnprocessableEntity, fmt.Sprint("card declined, try ", payments))
	})
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "7f3c")
		res, err := app.Test(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(res.StatusCode, string(body))
	}
	// Output:
	// 422 card declined, try 1
	// 422 card declined, try 1
}
