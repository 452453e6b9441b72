package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/retry"
)

// Publisher sends the messages of a store to a sink. Any number of publishers, in one
// or several processes, share the lanes of a store. Make it with [New].
type Publisher struct {
	store Store
	sink  Sink
	opt   Options
	runs  atomic.Bool
}

// New makes a publisher. Nil options mean the defaults.
func New(st Store, sink Sink, o *Options) (*Publisher, error) {
	if st == nil || sink == nil {
		return nil, errors.New("outbox: New: the store or the sink is nil")
	}
	opt, err := o.withDefaults(st.Woken() != nil)
	if err != nil {
		return nil, err
	}
	return &Publisher{store: st, sink: sink, opt: opt}, nil
}

// Run publishes until ctx ends. Then it takes no more messages, waits for those that are
// being sent (Options.Drain), and gives its lanes back. It returns nil, or an error if
// Run is called while another Run of the publisher runs. If the store does not answer,
// Run tries again.
func (p *Publisher) Run(ctx context.Context) error {
	if p.runs.Swap(true) {
		return errors.New("outbox: Run: the publisher already runs")
	}
	defer p.runs.Store(false)
	s := newSession(p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.trim(ctx)
	}()
	s.run(ctx)
	<-done
	return nil
}

// The limits of deleting old messages, and of one request to the store.
const (
	trimBatch    = 1000
	longestTrim  = time.Minute
	storeTimeout = 30 * time.Second
)

// trim deletes old messages until ctx ends.
func (p *Publisher) trim(ctx context.Context) {
	if p.opt.Retention == 0 {
		return
	}
	for {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		n, err := p.store.Trim(limited, p.opt.Retention, trimBatch)
		cancel()
		if err != nil && ctx.Err() == nil {
			p.observe(ctx, Event{Kind: EventStoreFailed, Lane: -1, Err: err})
		}
		if n < trimBatch && !retry.Pause(ctx, min(max(p.opt.Retention/10, time.Second), longestTrim)) || ctx.Err() != nil {
			return
		}
	}
}

func (p *Publisher) observe(ctx context.Context, e Event) {
	if p.opt.Observe != nil {
		callback.Report(ctx, "outbox: Observe", func() { p.opt.Observe(ctx, e) })
	}
}

// uniqueName is a name that no other run of a publisher has.
func (p *Publisher) uniqueName() string { return p.opt.Name + "-" + rand.Text()[:13] }
