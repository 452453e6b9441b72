package semelgin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp/semelgin"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleMiddleware() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	account := func(r *http.Request) (string, error) { return semelgin.Context(r).GetString("account"), nil }
	once, err := semelgin.Middleware(guard, account, nil)
	if err != nil {
		panic(err)
	}
	engine := gin.New()
	engine.Use(gin.Recovery(), func(c *gin.Context) { c.Set("account", "ann") }) // stands for authentication
	payments := 0
	engine.POST("/payments", once, func(c *gin.Context) {
		payments++
		c.JSON(http.StatusCreated, gin.H{"payment": payments})
	})
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "7f3c")
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 201 {"payment":1}
	// 201 {"payment":1}
}
