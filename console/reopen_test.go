package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

func TestReopen_Failed_RunsAgain(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	failed := named("POST /payments", "ann", "failed")
	s.want(s.post(failed.path, s.formOf(failed, "reopen")), http.StatusOK, "Reopened")
	if r := s.state(failed.key); r.State != store.Released || !strings.Contains(r.LastError, "eve: ledger 4711") {
		t.Errorf("the record is %v: %s", r.State, r.LastError)
	}
}

func TestReopen_StepRecorded_IsRefused(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	g, err := semel.New(s.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = semel.Once(t.Context(), g, semel.Call{Operation: "order", Tenant: "ann", Key: "o2", Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) error {
		_ = semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil })
		return semel.Final(errors.New("sold out"))
	})
	failed := named("order", "ann", "o2")
	s.want(s.get(failed.path), http.StatusOK, "This call cannot be reopened: it has recorded steps (charge)")
	s.want(s.post(failed.path, s.formOf(failed, "reopen")), http.StatusBadRequest, "Nothing was changed: the call has recorded steps (charge)")
	if page := s.get(failed.path); strings.Contains(page.body, `value="reopen"`) || s.state(failed.key).State != store.Failed {
		t.Errorf("the page offers to reopen the call, which is %v", s.state(failed.key).State)
	}
}

// Without the keys nobody can say why the call has failed.
func TestReopen_StepRecordedAndNoKeys_AsksForTheKeys(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	g, err := semel.New(s.store, &semel.Options{MaxAttempts: 1, Encryption: &encrypted.Cipher{Keys: ring("old")}})
	if err != nil {
		t.Fatal(err)
	}
	_ = semel.Once(t.Context(), g, semel.Call{Operation: "order", Tenant: "ann", Key: "o2", Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) error {
		_ = semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil })
		return errors.New("the bank is down")
	})
	page := s.get(named("order", "ann", "o2").path)
	if strings.Contains(page.body, "make a new call") || strings.Contains(page.body, `value="reopen"`) {
		t.Errorf("the page judges a result that it cannot read: %s", page.body)
	}
}
