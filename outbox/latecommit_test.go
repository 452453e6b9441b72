package outbox_test

import (
	"context"
	"slices"
	"testing"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// The control, which remembers a position, loses the late message.
func TestPublisher_CommitsLateWithLowerPosition_ControlLosesIt(t *testing.T) {
	m, control := outboxtest.NewMemory(), &naive{}
	var found []string
	commitLate(t, m, func(int) {
		ids, err := control.publish(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, ids...)
	})
	if !slices.Equal(found, []string{"early-0"}) {
		t.Errorf("the control found %q; want it to lose the late message", found)
	}
}

// commitLate writes two messages in two transactions, of which the later one commits
// first, and calls then after each commit.
func commitLate(t *testing.T, m *outboxtest.Memory, then func(commits int)) {
	t.Helper()
	late, early := m.Begin(), m.Begin()
	for _, put := range []struct {
		tx  *outboxtest.MemoryTx
		key string
	}{{late, "late"}, {early, "early"}} {
		if err := put.tx.Put(t.Context(), message(put.key, 0)); err != nil {
			t.Fatal(err)
		}
	}
	early.Commit()
	then(1)
	late.Commit()
	then(2)
}

// naive is how an outbox must not be read: by a position that grows.
type naive struct{ last int64 }

func (n *naive) publish(ctx context.Context, m *outboxtest.Memory) (sent []string, err error) {
	rows, err := m.List(ctx, outbox.Waiting, n.last, 100)
	for _, r := range rows {
		sent = append(sent, r.ID)
		n.last = r.Position
	}
	return sent, err
}
