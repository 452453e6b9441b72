package semelnats

import (
	"slices"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume/driver"
)

// beginRedelivery has Next begin with the messages that the server delivers again, such as
// the messages that an earlier Serve has given back. It does nothing without an OrderKey, because
// only order needs it.
func (s *Source) beginRedelivery(c *jetstream.ConsumerInfo) {
	if s.opt.OrderKey == nil {
		return
	}
	unsettled := c.NumAckPending // only these can be delivered again
	if most := c.Config.MaxAckPending; most > 0 && unsettled > 0 {
		unsettled = min(unsettled, max(1, most-unsettled))
	}
	s.redelivery.Store(int64(unsettled))
}

// redelivered takes messages that the server delivers again. It takes none after all of them
// have come: when a pull brings a message that is delivered for the first time, or nothing.
//
// The server takes such a message from the front of its queue before it looks for a pull. If
// the only pull has reached its limit of time by then, the server puts the message at the end
// of the queue, after later ones of its order key. So these pulls have no limit of time. The
// server ends them when no message waits, except while MaxAckPending messages are unsettled.
// Therefore they ask for no more messages than were unsettled, or missing to MaxAckPending, at
// the start: messages that are delivered again are unsettled before and after.
func (s *Source) redelivered(batch int) ([]driver.Delivery, error) {
	room := int(s.redelivery.Load())
	if room == 0 {
		return nil, nil
	}
	ds, err := s.collect(s.consumer.FetchNoWait(min(batch, room)))
	isNew := func(d driver.Delivery) bool { return d.Message().Deliveries == 1 }
	if err == nil && (len(ds) == 0 || slices.ContainsFunc(ds, isNew)) {
		s.redelivery.Store(0)
	}
	return ds, err
}
