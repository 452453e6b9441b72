package watermill

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelwatermill"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The handler writes through the transaction of the record: the writes of the attempt that
// fails are undone, and a duplicate writes nothing and publishes the same bill.
func TestAtomic_FirstAttemptFails_WritesOnce(t *testing.T) {
	store, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	atomic, err := sqlitestore.NewAtomic(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, runs := 0, 0
	once, err := semelwatermill.Handler(atomic, consume.Keyed("billing", consume.BrokerID()), func(msg *message.Message) ([]*message.Message, error) {
		tx, ok := sqlitestore.TxFrom(msg.Context())
		if !ok {
			t.Fatal("there is no transaction")
		}
		if _, err := tx.ExecContext(msg.Context(), "CREATE TABLE IF NOT EXISTS orders (id TEXT)"); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(msg.Context(), "INSERT INTO orders VALUES (?)", msg.UUID); err != nil {
			return nil, err
		}
		if err := tx.QueryRowContext(msg.Context(), "SELECT count(*) FROM orders").Scan(&rows); err != nil {
			return nil, err
		}
		if runs++; runs == 1 {
			return nil, errors.New("no connection")
		}
		return []*message.Message{message.NewMessage(watermill.NewUUID(), nil)}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	bills := map[string]int{}
	for i := range 3 {
		produced, err := once(message.NewMessageWithContext(t.Context(), "order-17", nil))
		if (err != nil) != (i == 0) {
			t.Errorf("delivery %d: %v", i+1, err)
		}
		for _, bill := range produced {
			bills[bill.UUID]++
		}
	}
	if runs != 2 || rows != 1 || len(bills) != 1 {
		t.Errorf("ran %d times, wrote %d rows, published %v", runs, rows, bills)
	}
}
