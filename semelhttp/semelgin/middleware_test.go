package semelgin_test

import (
	"errors"
	"io"
	"maps"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp/semelgin"
	"github.com/semel-go/semel/store/memstore"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	m.Run()
}

func start(t *testing.T, run semel.Runner, next func(string) answertest.Answer) string {
	once, err := semelgin.Middleware(run, answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := gin.New()
	engine.Use(func(c *gin.Context) {
		c.Request = c.Request.WithContext(answertest.Endable(c.Request.Context()))
		defer func() {
			if recover() != nil {
				c.AbortWithStatus(599)
			}
		}()
		c.Next()
		if s := c.Writer.Status(); !c.Writer.Written() || c.Writer.Size() < 0 || s < 200 {
			t.Errorf("after the middleware: status %d, size %d, written %v", s, c.Writer.Size(), c.Writer.Written())
		}
	})
	answerErrors := func(c *gin.Context) {
		c.Next()
		if err := c.Errors.Last(); err != nil {
			c.String(err.Meta.(int), err.Error())
		}
	}
	engine.POST("/pay", once, answerErrors, func(c *gin.Context) {
		body, _ := io.ReadAll(c.Request.Body)
		a := next(string(body))
		if a.Mark != nil {
			a.Mark(c.Request)
		}
		switch {
		case a.Panic:
			panic("boom")
		case a.Error:
			_ = c.Error(errors.New(a.Body)).SetMeta(a.Status)
			return
		case a.Status == 0:
			return
		}
		maps.Copy(c.Writer.Header(), a.Header)
		c.Status(a.Status) // Gin sends it later, if there is no body
		if a.Body != "" {
			c.Data(a.Status, "text/plain; charset=utf-8", []byte(a.Body))
		}
	})
	return answertest.Serve(t, engine)
}

func TestMiddleware_EachAnswer_AsWithNetHTTP(t *testing.T) { answertest.RunOneWay(t, start) }

func TestMiddleware_Replay_AbortsChain(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelgin.Middleware(guard, answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	runs, aborted := 0, 0
	engine := gin.New()
	engine.POST("/pay", func(c *gin.Context) {
		c.Next()
		if c.IsAborted() {
			aborted++
		}
	}, once, func(c *gin.Context) { runs++; c.Status(200) })
	url := answertest.Serve(t, engine)
	for range 3 {
		if s := answertest.Post(t, url+"/pay", "key", "hello"); s.Status != 200 {
			t.Errorf("got %+v", s)
		}
	}
	if runs != 1 || aborted != 2 {
		t.Errorf("the handler ran %d times, %d chains were aborted", runs, aborted)
	}
}

func TestMiddleware_Misconfigured_IsError(t *testing.T) {
	if _, err := semelgin.Middleware(nil, nil, nil); err == nil {
		t.Error("nil arguments are no error")
	}
}
