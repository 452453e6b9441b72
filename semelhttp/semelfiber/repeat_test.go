package semelfiber_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/answertest"
	"github.com/semel-go/semel/semelhttp/semelfiber"
	"github.com/semel-go/semel/store"
)

// repeats is a runner that repeats its first transaction.
type repeats struct {
	*semel.Guard
	runs int
}

func (r *repeats) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.Guard.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if r.runs++; r.runs == 1 {
			_, _ = fn(ctx, x)
		}
		return fn(ctx, x)
	})
}

type ownContext struct{ *fiber.DefaultCtx }

// Where the position in the chain cannot be set back, the client has to send its request
// again: an answer of a chain that begins elsewhere would be kept.
func TestMiddleware_ChainCannotRunAgain_Is503AndNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		app    *fiber.App
		change func(fiber.Ctx)
	}{
		"a context of the app's own": {fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx { return &ownContext{fiber.NewDefaultCtx(app)} }), func(fiber.Ctx) {}},
		"another path":               {fiber.New(), func(c fiber.Ctx) { c.Path("/elsewhere") }},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := semelfiber.Middleware(&repeats{Guard: newGuard(t)}, answertest.Tenant, nil)
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			c.app.Post("/pay", once, func(ctx fiber.Ctx) error {
				runs++
				c.change(ctx)
				return ctx.Status(201).SendString("paid")
			})
			url := serve(t, c.app) + "/pay"
			if s := answertest.Post(t, url, "key", "hello"); s.Status != http.StatusServiceUnavailable || s.Header.Get("Retry-After") != "1" || runs != 1 {
				t.Errorf("got %+v after %d runs, want 503 with Retry-After after 1", s, runs)
			}
			for range 2 {
				if s := answertest.Post(t, url, "key", "hello"); s.Status != 201 || s.Body != "paid" || runs != 2 {
					t.Errorf("sent again: got %+v after %d runs, want 201 after 2", s, runs)
				}
			}
		})
	}
}
