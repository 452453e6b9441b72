package kafkapg

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

// nilPointerError panics if it is a nil pointer.
type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }

// A nil pointer in an error must not end the process when a dead letter shows it.
func TestLedgers_ErrorIsNilPointer_IsReadable(t *testing.T) {
	var e *nilPointerError
	l := &keyedLedger{call: func(*consume.Message) (semel.Call, error) { return semel.Call{}, e }}
	_, ofCall := l.identify(&consume.Message{})
	ofHandler := Handler(func(context.Context, pgx.Tx, []*consume.Message) error { return e }).run(t.Context(), nil, nil)
	for name, err := range map[string]error{"of the CallFunc": ofCall, "of the handler": ofHandler} {
		if err == nil || err.Error() == "" {
			t.Errorf("the error %s is %v", name, err)
		}
	}
}
