package consumer

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/sqlitestore"
)

// Operation is what the records are about.
const Operation string = "billing"

// guarded consumes with Semel: the record and the charge commit in one
// transaction.
func guarded(ctx context.Context, o *Options, src driver.Source, d *diary) (err error) {
	st, err := sqlitestore.Open(ctx, o.Book, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	atomic, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		return err
	}
	key := consume.FromHeader(consume.KeyHeader)
	if o.BrokerKeys {
		key = consume.BrokerID()
	}
	handle := func(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
		tx, ok := sqlitestore.TxFrom(ctx)
		if !ok {
			return errors.New("there is no transaction")
		}
		d.of(m, Begun)
		if err := charge(ctx, tx, m, o.Work); err != nil {
			return err
		}
		d.of(m, Charged)
		return nil
	}
	c, err := consume.New(atomic, consume.Keyed(Operation, key), handle, &consume.Options{
		Concurrency: concurrency, InFlight: inFlight, Observe: d.observe,
	})
	if err != nil {
		return err
	}
	d.boot()
	return c.Serve(ctx, src)
}

func (d *diary) observe(_ context.Context, e consume.Event) {
	switch e.Kind {
	case consume.EventSettled, consume.EventReturned:
		d.settled(e.Message, e.Disposition.Reason)
	case consume.EventDecided:
		if e.Disposition.Action == driver.Hold {
			d.of(e.Message, Held)
		}
	}
}
