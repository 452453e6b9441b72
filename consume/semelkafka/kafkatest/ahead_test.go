package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
)

// The source looks ahead for full batches. A message that fails meanwhile
// delays the later ones with its record key, in whatever batch they are, and a
// message that came twice has one effect.
func TestServeBatches_Failure_DelaysItsKeyInLaterBatches(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	const orderKeys, each = 4, 1500
	for orderKey := range orderKeys {
		var ms []consume.Message
		for i := range each {
			m := msg(fmt.Sprintf("%d/%05d", orderKey, i), fmt.Sprintf("lane %d", orderKey))
			if ms = append(ms, m); i%10 == 0 && i >= 500 { // repeat a message of an earlier batch, or of this one
				ms = append(ms, ms[len(ms)-1-i%3*200])
			}
		}
		br.to(t, int32(orderKey%partitions), ms...)
	}
	var failures atomic.Int32
	b.member(t, keyed, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		for _, m := range ms {
			if string(m.Body) == "1/00400" && len(ms) == 1 && failures.Add(1) <= 3 || string(m.Body) == "1/00400" && len(ms) > 1 {
				return errors.New("not now")
			}
		}
		return b.write(ctx, tx, ms)
	}, nil)
	br.settled(t)
	effects := b.effects(t)
	wantKeysInOrder(t, effects)
	if len(effects) != orderKeys*each || failures.Load() < 3 {
		t.Errorf("%d effects, want %d; %d failures", len(effects), orderKeys*each, failures.Load())
	}
}

// wantKeysInOrder checks effects, in the order in which they happened, of keys
// that begin with their order key and a slash, and ascend in it.
func wantKeysInOrder(t *testing.T, effects []string) {
	t.Helper()
	last := map[string]string{}
	for _, key := range effects {
		orderKey, _, is := strings.Cut(key, "/")
		if !is {
			t.Fatalf("%q has no order key", key)
		}
		if key <= last[orderKey] {
			t.Fatalf("%s has its effect behind %s", key, last[orderKey])
		}
		last[orderKey] = key
	}
}
