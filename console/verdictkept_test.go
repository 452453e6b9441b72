package console_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
)

// The page that has the form which decides does not send the operator to a command, and the
// verdict is kept for as long as the longest default of a program.
func TestResolve_AnswerInDoubt_DecidedOnThePageForAWeek(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park, Observe: func(context.Context, semel.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "POST /payments", Tenant: "ann", Key: "answered", Payload: semel.Digest("semelhttp/2", make([]byte, 32))}
	_, _ = g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, errors.New("the handler answered 500: it may have been done")
	})
	answered := named(call.Operation, call.Tenant, call.Key)
	s.want(s.get(answered.path), http.StatusOK, "and decide below, or by semel inspect resolve", "semelhttp.NoEffect")
	s.want(s.post(answered.path, s.formOf(answered, "failed")), http.StatusOK, "Resolved.")
	if r := s.state(answered.key); r.Expires.Sub(r.Completed) != 7*24*time.Hour {
		t.Errorf("the verdict is kept for %v", r.Expires.Sub(r.Completed))
	}
}
