package semelfiber

import (
	"reflect"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// savedContext is a Fiber context as it was before the chain ran. It is needed if a
// store's Atomic repeats a transaction, because fiber.Ctx.Next only goes forward.
type savedContext struct {
	context  reflect.Value // a copy; not valid if the app has a context of its own
	path     string
	response *fasthttp.Response
}

func save(c fiber.Ctx) (s savedContext) {
	if d, ok := c.(*fiber.DefaultCtx); ok { // a copy of any other one may share its position in the chain
		s.context = reflect.New(reflect.TypeFor[fiber.DefaultCtx]()).Elem()
		s.context.Set(reflect.ValueOf(d).Elem())
		s.path, s.response = strings.Clone(c.Path()), fasthttp.AcquireResponse()
		c.Response().CopyTo(s.response)
	}
	return s
}

// restore sets c back, and reports whether it could. The chain has returned.
func (s savedContext) restore(c fiber.Ctx) bool {
	d, ok := c.(*fiber.DefaultCtx)
	if !ok || !s.context.IsValid() || c.Path() != s.path { // a path that the chain has changed is in the same buffer
		return false
	}
	reflect.ValueOf(d).Elem().Set(s.context)
	c.Response().Reset()
	s.response.CopyTo(c.Response())
	return true
}

func (s savedContext) release() {
	if s.response != nil {
		fasthttp.ReleaseResponse(s.response)
	}
}
