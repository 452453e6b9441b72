package driver

import (
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
