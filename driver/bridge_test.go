package driver

import (
	"encoding/json"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/store/memstore"
)

// Package semel returns its methods as any, so the compiler cannot check them.
func TestBridge_MethodsOfSemel_SatisfyInterfaces(t *testing.T) {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	methods, ok := bridge.Guard(g).(guardMethods)
	if !ok {
		t.Fatalf("%T does not implement guardMethods", bridge.Guard(g))
	}
	call, err := methods.NewTxCall(semel.Call{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.NoPayload()})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := call.(TxCall); !ok {
		t.Errorf("%T does not implement TxCall", call)
	}
	if methods := bridge.Execution(&semel.Execution{}); !isExecutionMethods(methods) {
		t.Errorf("%T does not implement executionMethods", methods)
	}
}

func isExecutionMethods(v any) bool {
	_, ok := v.(executionMethods)
	return ok
}

func TestCheckTenant_Names_AreChecked(t *testing.T) {
	for tenant, valid := range map[string]bool{"ann": true, semel.Shared: true, "": false, "\x00other": false} {
		if err := CheckTenant(tenant); (err == nil) != valid {
			t.Errorf("tenant %q: got error %v, want valid %v", tenant, err, valid)
		}
	}
}

func TestCheckPayload_Documents_AreChecked(t *testing.T) {
	for doc, valid := range map[string]bool{`{"id":1}`: true, `{"id":1,"id":1}`: false, `{"id":1e400}`: false} {
		if err := CheckPayload(semel.JSON(json.RawMessage(doc))); (err == nil) != valid {
			t.Errorf("%s: got error %v, want valid %v", doc, err, valid)
		}
	}
	if CheckPayload(semel.Payload{}) == nil || CheckPayload(semel.NoPayload()) != nil {
		t.Error("the zero Payload is valid, or NoPayload is not")
	}
}
