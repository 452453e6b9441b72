package consumer

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// naive consumes as it is often written, with a table of the messages that
// were seen: look there, note it there, do the work, ack. Copies that arrive
// together all find nothing; if a kill falls between the note and the work,
// the next delivery takes the message for done.
func naive(ctx context.Context, o *Options, src driver.Source, d *diary) (err error) {
	db, err := OpenBook(ctx, o.Book)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var handlers sync.WaitGroup
	defer handlers.Wait()
	free := make(chan struct{}, concurrency)
	d.boot()
	for ctx.Err() == nil {
		deliveries, err := src.Next(ctx, inFlight)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, m := range deliveries {
			free <- struct{}{}
			handlers.Go(func() {
				defer func() { <-free }()
				settleNaive(context.WithoutCancel(ctx), o, db, m, d) // a handler that has begun ends
			})
		}
	}
	return nil
}

// settleNaive acks what was handled, and gives back what was not.
func settleNaive(ctx context.Context, o *Options, db *sql.DB, m driver.Delivery, d *diary) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	why, err := handleNaive(ctx, o, db, m.Message(), d)
	if err == nil {
		err = m.Ack(ctx)
	} else {
		why = driver.ReasonError
		err = m.Nak(ctx, 100*time.Millisecond)
	}
	if err == nil {
		d.settled(m.Message(), why)
	}
}

func handleNaive(ctx context.Context, o *Options, db *sql.DB, m *consume.Message, d *diary) (driver.Reason, error) {
	key, _ := m.Header(consume.KeyHeader)
	var seen bool
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM seen WHERE message = ?)", key).Scan(&seen); err != nil {
		return "", err
	}
	if seen {
		return driver.ReasonDuplicate, nil
	}
	if _, err := db.ExecContext(ctx, "INSERT OR IGNORE INTO seen (message) VALUES (?)", key); err != nil {
		return "", err
	}
	d.of(m, Begun)
	if err := charge(ctx, db, m, o.Work); err != nil {
		return "", err
	}
	d.of(m, Charged)
	return driver.ReasonDone, nil
}
