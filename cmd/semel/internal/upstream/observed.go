package upstream

import (
	"context"
	"net/http"
	"slices"
)

// Observed is how the service answered a request that is forwarded without a key, for
// an observer. It is complete when the handler has returned.
type Observed struct {
	// Mark is what the answer says about itself, by its header or by Answers:
	// ResultFinal, ResultNoEffect or empty.
	Mark string
	// Err is why there was no answer of the service; nil: there was one. If nothing was
	// sent to the service, Mark is ResultNoEffect.
	Err error
}

// observedKey finds the Observed of a request in its context.
type observedKey struct{}

// Observe returns a context in which a Handler says how the service answered.
func Observe(ctx context.Context) (context.Context, *Observed) {
	o := &Observed{}
	return context.WithValue(ctx, observedKey{}, o), o
}

func observedFrom(ctx context.Context) *Observed {
	o, _ := ctx.Value(observedKey{}).(*Observed)
	return o
}

// mark is what an answer says about itself.
func (a *Answers) mark(res *http.Response) string {
	switch m := res.Header.Get(ResultHeader); {
	case m == ResultFinal || m == ResultNoEffect:
		return m
	case a == nil:
	case slices.Contains(a.NoEffect, res.StatusCode):
		return ResultNoEffect
	case IsRefusal(res.StatusCode, res.Header):
	case slices.Contains(a.Final, res.StatusCode), a.Keep5xx && res.StatusCode >= http.StatusInternalServerError:
		return ResultFinal
	}
	return ""
}
