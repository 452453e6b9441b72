package pgstore

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/encrypted"
)

// batchKeys are the keys for encryption of a test.
type batchKeys struct{}

func (batchKeys) Current(context.Context) (string, []byte, error)     { return "a", make([]byte, 32), nil }
func (batchKeys) Key(context.Context, string) (key []byte, err error) { return make([]byte, 32), nil }

// A service moves from leased calls to batches, and a leased attempt has recorded a step.
func TestRunBatch_StepOfLeasedAttempt_IsReplayed(t *testing.T) {
	t.Parallel()
	for name, cipher := range map[string]*encrypted.Cipher{"clear": nil, "encrypted": {Keys: batchKeys{}}} {
		for _, savepoints := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := &semel.Options{Encryption: cipher}
				p := newShop(t, openNew(t, nil), o)
				later := errors.New("later")
				err := semel.Once(t.Context(), leased(t, p.s, o), call("k"), func(ctx context.Context, x *semel.Execution) error {
					if _, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil)); err != nil {
						return err
					}
					return later
				})
				if !errors.Is(err, later) {
					t.Fatal(err)
				}
				if savepoints {
					p.a.savepointBatches.Store(10)
				}
				keys := []string{"new", "k"}
				for i, end := range p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
					for _, n := range newCalls {
						key := keys[n.Index]
						receipt, err := Do(ctx, p.a, n.Execution.Step("pay"), p.pay(key, nil))
						if err != nil || receipt != "receipt of "+key {
							t.Errorf("the step of %s: %q, %v", key, receipt, err)
						}
						if _, err := Do(ctx, p.a, n.Execution.Step("send"), p.pay("sent "+key, nil)); err != nil {
							t.Errorf("a step of %s that is new: %v", key, err)
						}
					}
					return nil
				}) {
					if end.Err != nil {
						t.Errorf("%s: %v", keys[i], end.Err)
					}
				}
				p.want(t, "k", "new", "sent k", "sent new")
			})
		}
	}
}
