package semelnats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume/driver"
)

// Source is a durable pull consumer as a driver.Source. It is safe for
// concurrent use. There is nothing to close; the caller closes the connection.
type Source struct {
	js       jetstream.JetStream
	consumer jetstream.Consumer
	stream   string
	durable  string
	opt      Options
	limits   atomic.Pointer[limits]
	// redelivery is how many messages a pull may ask for while the server may have messages
	// to deliver again; zero: it has none.
	redelivery atomic.Int64
	request    func(ctx context.Context, subject, text string) error // returns after the answer
	places     driver.CopyChecks                                     // of the copies, by the subject
}

// limits is how many messages a pull may ask for, and how long it may wait. The
// server refuses a pull that asks for more, and never fills one of more than MaxAckPending.
type limits struct {
	batch int
	wait  time.Duration
	read  time.Time // when the server was asked for them

	ackWait time.Duration // at the start: Serve extends its messages three times in it
}

// setLimits stores the limits of a consumer.
func (s *Source) setLimits(c *jetstream.ConsumerConfig, ackWait time.Duration) {
	l := limits{batch: math.MaxInt, wait: s.opt.PollWait, read: time.Now(), ackWait: ackWait}
	for _, most := range []int{c.MaxRequestBatch, c.MaxAckPending} {
		if most > 0 {
			l.batch = min(l.batch, most)
		}
	}
	if c.MaxRequestExpires > 0 {
		l.wait = min(l.wait, c.MaxRequestExpires)
	}
	s.limits.Store(&l)
}

// New makes a Source of a pull consumer. It does no I/O, and its error names
// every mistake in the consumer's configuration and in o.
func New(js jetstream.JetStream, c jetstream.Consumer, o *Options) (*Source, error) {
	if js == nil || c == nil {
		return nil, errors.New("semelnats: js and c: must not be nil")
	}
	info := c.CachedInfo()
	if info == nil {
		return nil, errors.New("semelnats: c: its configuration is unknown; get it from JetStream.Consumer or CreateOrUpdateConsumer")
	}
	s := &Source{js: js, consumer: c, stream: info.Stream, durable: info.Name, opt: o.withDefaults(info.Name)}
	if err := s.opt.check(&info.Config); err != nil {
		return nil, fmt.Errorf("semelnats: %w", err)
	}
	s.request = func(ctx context.Context, subject, text string) error {
		_, err := js.Conn().RequestWithContext(ctx, subject, []byte(text))
		return err
	}
	s.setLimits(&info.Config, ackWait(&info.Config))
	return s, nil
}

// Info implements driver.Source. It asks the server for the stream, and checks
// that other streams take the dead letters and the quarantine.
func (s *Source) Info(ctx context.Context) (driver.Info, error) {
	stream, err := s.js.Stream(ctx, s.stream)
	if err != nil {
		return driver.Info{}, fmt.Errorf("stream %q: %w", s.stream, err)
	}
	c, err := s.consumer.Info(ctx)
	if err != nil {
		return driver.Info{}, fmt.Errorf("consumer %q of stream %q: %w", s.durable, s.stream, err)
	}
	if err := s.opt.check(&c.Config); err != nil {
		return driver.Info{}, err
	}
	s.setLimits(&c.Config, ackWait(&c.Config))
	if err := CheckCopies(ctx, s.js, s.stream, s.durable, &s.opt); err != nil {
		return driver.Info{}, err
	}
	s.beginRedelivery(c)
	i := driver.Info{Horizon: stream.CachedInfo().Config.MaxAge, AckWait: ackWait(&c.Config), DeliveryLimit: max(0, c.Config.MaxDeliver)}
	if i.Horizon == 0 {
		i.Horizon = driver.Forever
	}
	return i, nil
}

// CheckCopies checks that streams other than the consumed one take the subjects of the dead
// letters and the quarantine of a consumer, and keep their messages: no stream with interest
// retention, which drops a message that no consumer waits for, and none without
// acknowledgements. A Source does it at the start of Serve, and again before it sends a copy; a
// program that does not find the consumer can call it, so that its error names all that is
// missing. Nil options mean the defaults. The error names each subject, and the command that helps.
func CheckCopies(ctx context.Context, js jetstream.JetStream, stream, consumer string, o *Options) error {
	opt := o.withDefaults(consumer)
	return checkPlaces(ctx, js, stream, consumer, opt.DeadLetters, opt.Quarantine)
}

// checkPlaces is CheckCopies of subjects.
func checkPlaces(ctx context.Context, js jetstream.JetStream, stream, consumer string, subjects ...string) error {
	var missing []string
	var errs []error
	for _, subject := range subjects {
		switch name, err := js.StreamNameBySubject(ctx, subject); {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = append(missing, subject)
		case err != nil:
			errs = append(errs, fmt.Errorf("subject %q: %w", subject, err))
		case name == stream:
			errs = append(errs, fmt.Errorf("subject %q: belongs to %q, the stream that is consumed, so copies would be consumed, too; give it another stream", subject, name))
		default:
			if err := keeps(ctx, js, name); err != nil {
				errs = append(errs, fmt.Errorf("subject %q: %w", subject, err))
			}
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("no stream takes %s, so copies would be lost; create one with: nats stream add %s-copies --subjects '%s' --defaults, or add them to a stream that exists: %w",
			strings.Join(missing, " and "), consumer, strings.Join(missing, ","), jetstream.ErrStreamNotFound))
	}
	return errors.Join(errs...)
}

// keeps returns an error if a stream does not keep each message that it acknowledges, or
// acknowledges none.
func keeps(ctx context.Context, js jetstream.JetStream, stream string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("stream %q: %w", stream, err)
	}
	switch c := s.CachedInfo().Config; {
	case c.Retention == jetstream.InterestPolicy:
		return fmt.Errorf("stream %q has interest retention, so it acknowledges a copy that no consumer waits for, and drops it; run: nats stream edit %s --retention limits, or give the subject another stream", stream, stream)
	case c.NoAck:
		return fmt.Errorf("stream %q acknowledges no message, so nobody knows whether it has a copy; run: nats stream edit %s --ack, or give the subject another stream", stream, stream)
	}
	return nil
}

// ackWait is the shortest time that the server waits for an ack.
func ackWait(c *jetstream.ConsumerConfig) time.Duration {
	d := c.AckWait
	if len(c.BackOff) > 0 {
		d = c.BackOff[0] // it takes the place of AckWait
		for _, b := range c.BackOff {
			d = min(d, b)
		}
	}
	return d
}

// errNotConnected is the error of Next while the client reconnects.
var errNotConnected = errors.New("semelnats: not connected")

// takeWait is how long a pull for the messages that wait stays open if they are fewer than
// it asks for. It is not a FetchNoWait, because the server does not end such a pull while
// MaxAckPending messages are unsettled: each ack makes room for one message in it, and the
// messages that it has wait here, without an extension, until it is full.
const takeWait = 10 * time.Millisecond

// Next implements driver.Source. It takes all messages that wait, or waits up
// to PollWait for one.
func (s *Source) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	conn := s.js.Conn()
	switch {
	case conn.IsClosed():
		return nil, fmt.Errorf("%w: the connection to NATS", driver.ErrClosed)
	case !conn.IsConnected():
		return nil, errNotConnected
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if err := s.readAgain(ctx); err != nil {
		return nil, err
	}
	allowed := s.limits.Load()
	batch := min(limit, allowed.batch)
	ds, err := s.redelivered(batch)
	if len(ds) == 0 && err == nil {
		ds, err = s.collect(s.consumer.Fetch(batch, jetstream.FetchMaxWait(min(takeWait, allowed.wait))))
	}
	if len(ds) == 0 && err == nil && ctx.Err() == nil {
		// This pull does not end with ctx: the server may have sent a message by
		// then, and would not redeliver it before its AckWait is over.
		ds, err = s.collect(s.consumer.Fetch(1, jetstream.FetchMaxWait(allowed.wait)))
	}
	if err == nil || ctx.Err() != nil {
		return ds, err
	}
	return ds, s.explain(ctx, err)
}

// readEach is how often Next reads the consumer's configuration, which an operator can change.
const readEach = 5 * time.Second

// readAgain returns an error while the consumer has a configuration that Serve would refuse
// at its start: with a MaxDeliver the server would drop messages. It also returns one while
// AckWait is less than half of what it was then, because Serve extends its messages too late.
func (s *Source) readAgain(ctx context.Context) error {
	known := *s.limits.Load()
	if time.Since(known.read) < readEach {
		return nil
	}
	c, err := s.consumer.Info(ctx)
	if err != nil { // the pull tells, and the next Next does not wait for this answer again
		known.read = time.Now()
		s.limits.Store(&known)
		return ctx.Err()
	}
	err = s.opt.check(&c.Config)
	if d := ackWait(&c.Config); d < known.ackWait/2 {
		err = errors.Join(err, fmt.Errorf("the consumer's AckWait: is %v, and was %v when Serve began, so that messages are delivered again while they run; or start Serve again", d, known.ackWait))
	}
	if err != nil {
		return fmt.Errorf("semelnats: consumer %q of stream %q was changed, and no message is taken until that is undone: %w", s.durable, s.stream, err)
	}
	s.setLimits(&c.Config, known.ackWait)
	return nil
}

// explain marks the error of a pull as ErrClosed if the server says that the consumer is
// gone. The error alone does not show that: it can come from a message whose headers look
// like the server's notice.
func (s *Source) explain(ctx context.Context, err error) error {
	switch _, infoErr := s.consumer.Info(ctx); {
	case isDeleted(infoErr):
		return fmt.Errorf("%w: consumer %q of stream %q: %w", driver.ErrClosed, s.durable, s.stream, infoErr)
	case infoErr == nil && isDeleted(err):
		return fmt.Errorf("semelnats: stream %q has a message without a body whose headers look like a notice of the server (Status: 409); "+
			"no client can read it, so delete it with: nats stream rmm %s SEQUENCE: %w", s.stream, s.stream, err)
	}
	return err
}

// collect waits for the end of a pull. It returns an error only if no message
// came.
func (s *Source) collect(batch jetstream.MessageBatch, err error) (ds []driver.Delivery, _ error) {
	if err != nil {
		return nil, err
	}
	for m := range batch.Messages() {
		own, err := message(m)
		if err != nil {
			return ds, fmt.Errorf("semelnats: a message without JetStream's metadata: %w", err)
		}
		if s.opt.OrderKey != nil {
			own.OrderKey = s.opt.OrderKey(own)
		}
		ds = append(ds, &delivery{s: s, m: m, own: own})
	}
	if len(ds) == 0 {
		return nil, batch.Error()
	}
	return ds, nil
}

// isDeleted reports whether an error says that the consumer or its stream is gone.
func isDeleted(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// Stop implements driver.Source. It has nothing to do: Next waits for the end
// of its pull, so that no pull is open when Serve gives messages back.
func (s *Source) Stop(context.Context) error { return nil }
