package semelsqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume/driver"
)

// Source is a queue as a driver.Source. It is safe for concurrent use. There is
// nothing to close.
type Source struct {
	client  *sqs.Client
	name    string // without the account
	queue   string // as given to New
	opt     Options
	seconds atomic.Int64 // the visibility time-out
	deletes batcher
	changes batcher
	full    atomic.Bool // the last Next returned as many messages as it could
	single  atomic.Bool // a receive asks for one message
	urlsMu  sync.Mutex
	urls    map[string]string // by name
}

// New makes a Source of a queue, which is a name or a URL. It does no I/O, and its
// error names every mistake in its arguments. Serve checks the queues.
func New(client *sqs.Client, queue string, o *Options) (*Source, error) {
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("client: must not be nil"))
	}
	if queue == "" {
		errs = append(errs, errors.New("queue: must not be empty; give the name or the URL of a queue"))
	}
	s := &Source{client: client, name: queue[strings.LastIndexByte(queue, '/')+1:], queue: queue, opt: o.withDefaults(queue), urls: map[string]string{}}
	if err := errors.Join(append(errs, s.opt.check())...); err != nil {
		return nil, fmt.Errorf("semelsqs: %w", err)
	}
	s.seconds.Store(int64(s.opt.Visibility / time.Second))
	s.deletes.send, s.changes.send = s.deleteBatch, s.changeBatch
	return s, nil
}

func isFIFOName(queue string) bool { return strings.HasSuffix(queue, fifoSuffix) }

func (s *Source) isFIFO() bool { return isFIFOName(s.name) }

func (s *Source) visibility() time.Duration { return time.Duration(s.seconds.Load()) * time.Second }

const (
	// receives is how many requests one Next makes at once, if the last was full.
	receives = 5
	// receiveGrace is how long the answer to a receive may take beyond its wait.
	receiveGrace = 10 * time.Second
)

// Next implements driver.Source. A receive does not end with ctx, because SQS would
// hide its messages until their visibility time-out is over. While messages wait in the
// queue, several receives run at once; none of them waits for messages, because those of
// the others would wait with it.
func (s *Source) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	requests, wait := 1, s.opt.PollWait
	if s.full.Load() {
		requests, wait = min(receives, (limit+s.batch()-1)/s.batch()), 0
	}
	began := time.Now()
	ms, err := s.receiveAll(ctx, requests, limit, wait)
	s.full.Store(len(ms) > 0 && len(ms) >= min(limit, requests*s.batch()))
	ds := make([]driver.Delivery, len(ms))
	for i := range ms {
		ds[i] = s.delivery(ms[i], began)
	}
	return ds, err
}

// batch is how many messages a receive asks for.
func (s *Source) batch() int {
	if s.single.Load() {
		return 1
	}
	return maxBatch
}

// receiveAll receives up to limit messages by several requests at once.
func (s *Source) receiveAll(ctx context.Context, requests, limit int, wait time.Duration) (ms []types.Message, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range requests {
		n := min(limit, s.batch())
		limit -= n
		all.Go(func() {
			got, receiveErr := s.receive(ctx, n, wait)
			mu.Lock()
			defer mu.Unlock()
			ms, err = append(ms, got...), errors.Join(err, receiveErr)
		})
	}
	all.Wait()
	return ms, err
}

func (s *Source) receive(ctx context.Context, n int, wait time.Duration) ([]types.Message, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+receiveGrace)
	defer cancel()
	out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: s.queueURL(), MaxNumberOfMessages: int32(n), WaitTimeSeconds: int32(wait / time.Second),
		VisibilityTimeout: int32(s.seconds.Load()), MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}, sendWait)
	switch {
	case isUnknownQueue(err):
		return nil, fmt.Errorf("%w: queue %q was deleted: %w", driver.ErrClosed, s.name, err)
	case err != nil:
		return nil, fmt.Errorf("semelsqs: receive from queue %q: %w", s.name, err)
	}
	return out.Messages, nil
}

// Stop implements driver.Source. It has nothing to do: Next waits for the end of its
// receives, so that none is open when Serve gives messages back.
func (s *Source) Stop(context.Context) error { return nil }
