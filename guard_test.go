package semel_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

func TestADuplicateGetsTheFirstAnswer(t *testing.T) {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for range 3 {
		got, err := semel.Do(t.Context(), g, semel.NewCall(semel.Operation("charge").For("ann"), "k1", semel.JSON(1)),
			func(ctx context.Context, x *semel.Execution) (string, error) {
				runs++
				return "receipt", nil
			})
		if err != nil || got != "receipt" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}
