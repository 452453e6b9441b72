package kafkapg

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
)

// A group that no call can be of would send a whole topic to the dead letters:
// it is refused before anything is asked for or taken.
func TestServeKeyed_InvalidOperation_IsErrorAtStart(t *testing.T) {
	s, err := semelkafka.New("g", []string{"t"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := consume.Keyed("billing#1", consume.FromHeader(consume.KeyHeader))
	h := func(context.Context, pgx.Tx, []*consume.Message) error { return nil }
	if err := ServeKeyed(t.Context(), s, &pgstore.Atomic{}, call, h, nil); err == nil || !strings.Contains(err.Error(), "operation") {
		t.Errorf("it began, or said %v", err)
	}
}
