package semelgin_test

import (
	"errors"
	"html/template"
	"io"
	"net/http"
	"strings"
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

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// Gin only notes the error of an answer that breaks off. Errors that a handler notes itself
// say nothing about its answer.
func TestMiddleware_AnswerBreaksOff_IsNotKept(t *testing.T) {
	page := template.Must(template.New("page").Parse("half {{index .rows 1}}"))
	for name, c := range map[string]struct {
		answer gin.HandlerFunc
		status int
		runs   int
	}{
		"stream": {func(c *gin.Context) {
			c.DataFromReader(200, -1, "text/csv", io.MultiReader(strings.NewReader("half"), failingReader{}), nil)
		}, http.StatusBadGateway, 2},
		"stream, first byte": {func(c *gin.Context) { c.DataFromReader(200, -1, "text/csv", failingReader{}, nil) }, http.StatusBadGateway, 2},
		"template":           {func(c *gin.Context) { c.HTML(200, "page", gin.H{"rows": []int{}}) }, http.StatusBadGateway, 2},
		"whole stream":       {func(c *gin.Context) { c.DataFromReader(200, 5, "text/csv", strings.NewReader("whole"), nil) }, 200, 1},
		"no body allowed":    {func(c *gin.Context) { c.Status(204); _, _ = io.Copy(c.Writer, io.MultiReader(strings.NewReader("x"))) }, 204, 1},
		"noted error":        {func(c *gin.Context) { _ = c.AbortWithError(422, errors.New("no funds")) }, 422, 1},
		"answer, then error": {func(c *gin.Context) { c.AbortWithStatusJSON(422, "no funds"); _ = c.Error(errors.New("no funds")) }, 422, 1},
	} {
		t.Run(name, func(t *testing.T) {
			guard, err := semel.New(memstore.New(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			once, err := semelgin.Middleware(guard, answertest.Tenant, nil)
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			engine := gin.New()
			engine.SetHTMLTemplate(page)
			engine.POST("/pay", once, func(g *gin.Context) { runs++; c.answer(g) })
			url := answertest.Serve(t, engine) + "/pay"
			for range 2 {
				if s := answertest.Post(t, url, "key", "hello"); s.Status != c.status || strings.Contains(s.Body, "half") {
					t.Errorf("got %+v", s)
				}
			}
			if runs != c.runs {
				t.Errorf("the handler ran %d times, want %d", runs, c.runs)
			}
		})
	}
}
