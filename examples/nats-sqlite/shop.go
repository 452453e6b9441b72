package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/store/sqlitestore"
)

type order struct {
	ID    string `json:"id"`
	Item  string `json:"item"`
	Cents int64  `json:"cents"`
}

// shop is the application: its tables, and Semel's in the same file.
type shop struct {
	db    *sql.DB
	store *sqlitestore.Store
	once  *sqlitestore.Atomic
	w     io.Writer
}

func openShop(ctx context.Context, dir string, w io.Writer) (_ *shop, err error) {
	path := filepath.Join(dir, "shop.db")
	s := &shop{w: w}
	if s.store, err = sqlitestore.Open(ctx, path, nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.db, err = sql.Open("sqlite", path); err != nil { // the driver that sqlitestore uses
		return nil, err
	}
	const table = "CREATE TABLE IF NOT EXISTS booking (order_id TEXT NOT NULL, item TEXT NOT NULL, cents INTEGER NOT NULL)"
	if _, err = s.db.ExecContext(ctx, table); err != nil {
		return nil, err
	}
	s.once, err = sqlitestore.NewAtomic(s.store, &semel.Options{Retention: consume.DefaultRetention})
	return s, err
}

func (s *shop) close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	return errors.Join(err, s.store.Close())
}

// book is the handler. Its writes in the transaction, and the record that
// the message was handled, commit together or not at all.
func (s *shop) book(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
	var o order
	if err := json.Unmarshal(m.Body, &o); err != nil {
		return semel.Final(err) // to the dead letters; any other error: again later
	}
	tx, ok := sqlitestore.TxFrom(ctx)
	if !ok {
		return errors.New("booking needs a transaction")
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO booking VALUES (?, ?, ?)", o.ID, o.Item, o.Cents); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.w, "booking %s\n", o.ID)
	return err
}

func (s *shop) booked(ctx context.Context) (bookings int, cents int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(cents), 0) FROM booking").Scan(&bookings, &cents)
	return bookings, cents, err
}

// serve handles messages until there are none. A service would serve until it
// is told to stop.
func serve(ctx context.Context, b *broker, s *shop) error {
	source, err := semelnats.New(b.js, b.consumer, &semelnats.Options{PollWait: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	starts, err := semel.New(s.store, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	consumer, err := consume.New(s.once, consume.Keyed("booking", consume.FromHeader(consume.KeyHeader)), s.book, &consume.Options{
		MaxDeliveries: 5, Starts: starts, // SQLite rolls the count of attempts back with the transaction; the broker's stays
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- consumer.Serve(ctx, source) }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			idle, err := b.idle(ctx)
			if err != nil || idle {
				stop()
				return errors.Join(err, <-ended)
			}
		}
	}
}
