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

// With an invalid operation every message of the topic would become a dead
// letter, so ServeKeyed returns an error before it connects to Kafka or the
// database.
func TestServeKeyed_InvalidOperation_IsErrorAtStart(t *testing.T) {
	s, err := semelkafka.New("g", []string{"t"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := consume.Keyed("billing#1", consume.FromHeader(consume.KeyHeader))
	h := func(context.Context, pgx.Tx, []*consume.Message) error { return nil }
	if err := ServeKeyed(t.Context(), s, &pgstore.Atomic{}, call, h, nil); err == nil || !strings.Contains(err.Error(), "operation") {
		t.Errorf("ServeKeyed returned %v, want an error about the operation", err)
	}
}
