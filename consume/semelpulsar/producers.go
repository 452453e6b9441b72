package semelpulsar

import (
	"context"
	"errors"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
)

// producers are the producers of topics. Each is made at the first use of its topic, and
// made again if the client has closed it.
type producers struct {
	create func(topic string) (pulsar.Producer, error)

	mu     sync.Mutex
	opened map[string]*opening // by the topic
	closed bool
}

// opening is a producer that is made, or was.
type opening struct {
	done     chan struct{} // closed when producer and err are set
	producer pulsar.Producer
	err      error
}

// errProducersClosed is the error of a message after close.
var errProducersClosed = errors.New("its producer is closed")

// open returns the producer of a topic, and makes it if there is none. The client's call
// takes no context, so that it may end after ctx; the next call of open then waits for it.
func (p *producers) open(ctx context.Context, topic string) (*opening, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errProducersClosed
	}
	o := p.opened[topic]
	if o == nil {
		if p.opened == nil {
			p.opened = map[string]*opening{}
		}
		o = &opening{done: make(chan struct{})}
		p.opened[topic] = o
		go p.make(topic, o)
	}
	p.mu.Unlock()
	select {
	case <-o.done:
		return o, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// make makes the producer of a topic.
func (p *producers) make(topic string, o *opening) {
	producer, err := p.create(topic)
	if err != nil { // then the client returns a typed nil
		o.err = err
		p.forget(topic, o)
	} else {
		o.producer = producer
	}
	close(o.done)
}

// send sends a message. The client closes a producer whose topic was deleted or terminated,
// and does not connect it again; the next message then gets another one.
func (p *producers) send(ctx context.Context, topic string, m *pulsar.ProducerMessage) error {
	o, err := p.open(ctx, topic)
	if err != nil {
		return err
	}
	_, err = o.producer.Send(ctx, m)
	for _, closed := range []error{pulsar.ErrProducerClosed, pulsar.ErrTopicNotfound, pulsar.ErrTopicTerminated, pulsar.ErrProducerFenced} {
		if errors.Is(err, closed) {
			p.forget(topic, o)
		}
	}
	return err
}

// forget has the next message of a topic make a producer of its own.
func (p *producers) forget(topic string, o *opening) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened[topic] != o {
		return
	}
	delete(p.opened, topic)
	if o.producer != nil {
		go o.producer.Close()
	}
}

// close closes the producers. It waits for one that is being made.
func (p *producers) close() {
	p.mu.Lock()
	opened := p.opened
	p.opened, p.closed = nil, true
	p.mu.Unlock()
	for _, o := range opened {
		<-o.done
		if o.producer != nil {
			o.producer.Close()
		}
	}
}
