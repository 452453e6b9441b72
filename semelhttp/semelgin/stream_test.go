package semelgin_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp/semelgin"
	"github.com/semel-go/semel/store/memstore"
)

func TestMiddleware_FlushAndHijack_AsWithNetHTTP(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelgin.Middleware(guard, answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := gin.New()
	engine.POST("/pay", once, func(c *gin.Context) {
		if _, _, err := c.Writer.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
		c.String(201, "one ")
		c.Writer.Flush()
		_, _ = io.WriteString(c.Writer, "two")
		if c.Writer.Status() != 201 || c.Writer.Size() != len("one two") || !c.Writer.Written() {
			t.Errorf("status %d, size %d", c.Writer.Status(), c.Writer.Size())
		}
	})
	url := answertest.Serve(t, engine) + "/pay"
	if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "one two" {
		t.Errorf("got %+v", s)
	}
	if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "" || s.Header.Get("Semel-Outcome") != "not-kept" {
		t.Errorf("the duplicate got %+v", s)
	}
}
