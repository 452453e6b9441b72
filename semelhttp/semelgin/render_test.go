package semelgin_test

import (
	"errors"
	"html/template"
	"math"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semelhttp/semelgin"
	"github.com/semel-go/semel/store/memstore"
)

// Gin notes the error of a renderer and aborts, so that the answer is a status alone.
func TestMiddleware_RendererFailsBeforeFirstByte_IsNoAnswer(t *testing.T) {
	declined := errors.New("declined")
	for name, c := range map[string]struct {
		answer gin.HandlerFunc
		status int
		runs   int
	}{
		"JSON of NaN":       {func(c *gin.Context) { c.JSON(201, math.NaN()) }, 502, 2},
		"pure JSON":         {func(c *gin.Context) { c.PureJSON(201, make(chan int)) }, 502, 2},
		"XML":               {func(c *gin.Context) { c.XML(201, map[int]int{}) }, 502, 2},
		"abort with JSON":   {func(c *gin.Context) { c.AbortWithStatusJSON(422, math.NaN()) }, 502, 2},
		"no such template":  {func(c *gin.Context) { c.HTML(201, "absent", nil) }, 502, 2},
		"JSON":              {func(c *gin.Context) { c.JSON(201, 1) }, 201, 1},
		"JSON, no body":     {func(c *gin.Context) { c.JSON(204, math.NaN()) }, 204, 1},
		"status and error":  {func(c *gin.Context) { c.Status(422); _ = c.Error(declined); c.Abort() }, 422, 1},
		"abort with error":  {func(c *gin.Context) { c.Header("Content-Type", "text/plain"); _ = c.AbortWithError(422, declined) }, 422, 1},
		"no effect, failed": {func(c *gin.Context) { semelhttp.NoEffect(c.Request); c.JSON(503, math.NaN()) }, 503, 2},
		"final, failed":     {func(c *gin.Context) { c.Header("Semel-Result", "final"); c.JSON(500, math.NaN()) }, 500, 1},
		"noted, not failed": {func(c *gin.Context) { _ = c.Error(declined); c.Header("Content-Type", "text/plain"); c.Status(422) }, 422, 1},
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
			engine.SetHTMLTemplate(template.Must(template.New("paid").Parse("paid")))
			engine.POST("/pay", once, func(g *gin.Context) { runs++; c.answer(g) })
			url := answertest.Serve(t, engine) + "/pay"
			for range 2 {
				if s := answertest.Post(t, url, "key", "hello"); s.Status != c.status {
					t.Errorf("got %d %q", s.Status, s.Body)
				}
			}
			if runs != c.runs {
				t.Errorf("the handler ran %d times, want %d", runs, c.runs)
			}
		})
	}
}

// An outer middleware has set the type of all answers, and the chain notes an error and sets
// no status, so that no renderer has failed: the chain has not answered.
func TestMiddleware_OuterTypeAndNotedError_IsSilence(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelgin.Middleware(guard, answertest.Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := gin.New()
	engine.Use(func(c *gin.Context) { c.Header("Content-Type", "application/json") })
	engine.POST("/pay", once, func(c *gin.Context) { _ = c.Error(errors.New("declined")); c.Abort() })
	if s := answertest.Post(t, answertest.Serve(t, engine)+"/pay", "key", "hello"); s.Status != 500 {
		t.Errorf("got %d %q, want 500 (answer_missing)", s.Status, s.Body)
	}
}
