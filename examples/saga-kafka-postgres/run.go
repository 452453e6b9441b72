package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
)

// database is the database of a service: its own tables, Semel's records and the outbox.
type database struct {
	*service
	pool  *pgxpool.Pool
	store *pgstore.Store
	once  *pgstore.Atomic
	box   *pgoutbox.Outbox
}

func (c *config) open(ctx context.Context, s *service) (*database, error) {
	cfg, err := pgxpool.ParseConfig(c.postgres)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.Database = s.name
	d := &database{service: s}
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if d.store, err = pgstore.New(ctx, d.pool, &pgstore.Options{Connections: 4}); err != nil {
		d.pool.Close()
		return nil, err
	}
	d.once, err = pgstore.NewAtomic(d.store, &semel.Options{Retention: consume.DefaultRetention})
	if err == nil {
		d.box, err = pgoutbox.New(d.store, nil)
	}
	if err != nil {
		d.close()
	}
	return d, err
}

func (d *database) close() {
	if d.box != nil {
		_ = d.box.Close() // it only listens
	}
	_ = d.store.Close() // every effect is committed
	d.pool.Close()
}

// serve handles the events of the other services until ctx ends.
func (c *config) serve(ctx context.Context, s *service) error {
	d, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer d.close()
	keys := consume.Keyed(s.name, consume.FromHeader(consume.KeyHeader))
	return c.consume(ctx, s, d.once, keys, d.handle)
}

// consume runs a handler for each event that a service hears.
func (c *config) consume(ctx context.Context, s *service, run semel.Runner, keys consume.CallFunc, h consume.Handler) error {
	source, err := semelkafka.New(s.name, s.hears, &semelkafka.Options{
		HandOver: c.session / 3,
		Client: []kgo.Opt{
			kgo.SeedBrokers(c.kafka), kgo.SessionTimeout(c.session), kgo.RebalanceTimeout(c.session), kgo.HeartbeatInterval(c.session / 10),
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // Serve has settled all messages
	consumer, err := consume.New(run, keys, h, &consume.Options{Concurrency: 8})
	if err != nil {
		return err
	}
	return consumer.Serve(ctx, source)
}

// handle has the effect of an event and writes the event that follows. Both commit in
// one transaction, together with the record that this event was handled.
func (d *database) handle(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	tx, ok := pgstore.TxFrom(ctx)
	if !ok {
		return errors.New("an event needs a transaction")
	}
	e, err := d.change(ctx, tx, m)
	if err != nil || e == nil {
		return err
	}
	return d.emit(ctx, tx, x, e)
}

// change has the effect of an event and returns the event that follows, or nil.
func (d *database) change(ctx context.Context, tx pgx.Tx, m *consume.Message) (*event, error) {
	var e event
	if err := json.Unmarshal(m.Body, &e); err != nil {
		return nil, semel.Final(err) // to the dead letters; another error is tried again later
	}
	next, err := d.react(ctx, tx, &e)
	if err != nil || next == "" {
		return nil, err
	}
	e.Type = next
	return &e, nil
}

// emit writes an event into the outbox and into the service's history. Events of a
// customer stay in order.
func (d *database) emit(ctx context.Context, tx pgx.Tx, x *semel.Execution, e *event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := d.box.Put(ctx, tx, outbox.Message{Topic: d.name, OrderKey: e.Customer, ID: x.DownstreamKey("event"), Body: body}); err != nil {
		return err
	}
	return remember(ctx, tx, e)
}

// remember adds an event to the service's history.
func remember(ctx context.Context, tx pgx.Tx, e *event) error {
	_, err := tx.Exec(ctx, "INSERT INTO history (type, order_id, customer) VALUES ($1, $2, $3)", e.Type, e.Order, e.Customer)
	return err
}

// place places orders, each of them once for its ID.
func (c *config) place(ctx context.Context, orders ...event) error {
	d, err := c.open(ctx, services["orders"])
	if err != nil {
		return err
	}
	defer d.close()
	for _, o := range orders {
		if err := d.place(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) place(ctx context.Context, o event) error {
	o.Type = orderPlaced
	call := semel.Call{Operation: "place", Tenant: o.Customer, Key: o.Order, Payload: semel.JSON(o)}
	return pgstore.Once(ctx, d.once, call, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO purchase VALUES ($1, 'placed')", o.Order); err != nil {
			return err
		}
		return d.emit(ctx, tx, x, &o)
	})
}

// publish sends the events of a service's outbox until ctx ends.
func (c *config) publish(ctx context.Context, s *service) error {
	d, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer d.close()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.kafka), kgo.ProducerLinger(0), kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		return err
	}
	defer client.Close()
	sink, err := semelkafka.NewSink(client)
	if err != nil {
		return err
	}
	publisher, err := outbox.New(d.box, sink, &outbox.Options{Lease: c.lease, Observe: outbox.LogEvents(nil)})
	if err != nil {
		return err
	}
	return publisher.Run(ctx)
}
