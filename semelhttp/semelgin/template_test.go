package semelgin_test

import (
	"io"
	"testing"
	"text/template"

	"github.com/gin-gonic/gin"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp/semelgin"
	"github.com/semel-go/semel/store/memstore"
)

// A handler notes the error of a mail's template, and answers.
func TestMiddleware_OtherTemplateFails_AnswerIsKept(t *testing.T) {
	mail := template.Must(template.New("mail").Parse("{{index .rows 1}}"))
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
	engine.POST("/pay", once, func(g *gin.Context) {
		runs++ // charges
		if err := mail.Execute(io.Discard, gin.H{"rows": []int{}}); err != nil {
			_ = g.Error(err)
		}
		g.JSON(201, "paid")
	})
	url := answertest.Serve(t, engine) + "/pay"
	for range 2 {
		if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 {
			t.Errorf("got %d %s", s.Status, s.Body)
		}
	}
	if runs != 1 {
		t.Errorf("charged %d times, want once", runs)
	}
}
