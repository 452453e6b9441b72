package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// oneKey is a key whose ID is "a".
type oneKey struct{}

func (oneKey) Current(context.Context) (string, []byte, error)   { return "a", make([]byte, 32), nil }
func (oneKey) Key(context.Context, string) (key []byte, _ error) { return make([]byte, 32), nil }

// The input of a saga, the results of its steps, its result and its failure are
// encrypted, and are read by the next run.
func TestDo_Encryption_NothingOfTheSagaInTheClear(t *testing.T) {
	const canary = "canary-4711"
	st := memstore.New(nil)
	g, err := semel.New(st, &semel.Options{Encryption: &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}})
	if err != nil {
		t.Fatal(err)
	}
	charged, undone := 0, 0
	s, err := saga.New(g, saga.Definition[order, string]{
		Name: "order", Steps: []string{"charge", "ship"},
		Run: func(ctx context.Context, r *saga.Run, o order) (string, error) {
			payment, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) {
				charged++
				return "payment of " + o.Item, nil
			}, func(_ context.Context, _ saga.At, payment string) error {
				if undone++; !strings.Contains(payment, canary) {
					t.Errorf("the compensation got %q", payment)
				}
				return nil
			})
			if err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "ship", func(context.Context, saga.At) (string, error) {
				if o.Cents < 0 {
					return "", &semel.Failure{Code: "refused", Message: canary}
				}
				return "shipped after " + payment, nil
			}, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := s.Do(t.Context(), "ann", "o1", order{Item: canary, Cents: 1}); err != nil || got != "shipped after payment of "+canary {
			t.Errorf("%q, %v", got, err)
		}
		_, err := s.Do(t.Context(), "ann", "o2", order{Item: canary, Cents: -1})
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Message != canary {
			t.Errorf("%v", err)
		}
	}
	if charged != 2 || undone != 1 {
		t.Errorf("charged %d times, undone %d times", charged, undone)
	}
	for f, err := range st.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		steps, err := st.Steps(t.Context(), f.Record.Lease())
		if err != nil || len(steps) == 0 {
			t.Fatalf("%d steps, %v", len(steps), err)
		}
		all := fmt.Sprintf("%+v %s", f.Record, f.Record.Outcome.Body) // %+v shows bytes as numbers
		for i := range steps {
			all += fmt.Sprintf("%+v %s", steps[i], steps[i].Outcome.Body)
		}
		if strings.Contains(all, canary) {
			t.Errorf("the store has %s", all)
		}
	}
}
