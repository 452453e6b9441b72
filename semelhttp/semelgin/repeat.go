package semelgin

import (
	"maps"
	"reflect"

	"github.com/gin-gonic/gin"
)

// savedContext is a Gin context as it was before the chain ran. It is needed if a store's
// Atomic repeats a transaction, because gin.Context.Next only goes forward.
type savedContext struct {
	context reflect.Value // a copy, made by reflection because it has a lock
	keys    map[any]any
}

func save(c *gin.Context) savedContext {
	s := savedContext{reflect.New(reflect.TypeFor[gin.Context]()).Elem(), maps.Clone(c.Keys)}
	s.context.Set(reflect.ValueOf(c).Elem())
	return s
}

// restore sets c back. The chain has returned, and nothing that it started may use c
// any more, as always with Gin.
func (s savedContext) restore(c *gin.Context) {
	reflect.ValueOf(c).Elem().Set(s.context)
	c.Keys = maps.Clone(s.keys)
}
