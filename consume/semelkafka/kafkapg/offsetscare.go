package kafkapg

import (
	"context"
	"errors"

	"github.com/semel-go/semel/consume/driver"
)

// begin is the care that is to be taken with a message's partition, nil: none. It
// begins with the partition if need be.
func (r *offsetsRun) begin(ctx context.Context, i int) (*care, error) {
	it := &r.batch[i]
	if i > 0 && r.fast && r.batch[i-1].Place == it.Place {
		return nil, nil
	}
	if _, blocked := r.blocked[it.Place]; blocked { // what follows tells it why
		return nil, nil
	}
	if _, err := r.mark(ctx, it); err != nil {
		return nil, err
	}
	c, err := r.cares.begin(ctx, r.st, it)
	if r.fast = err == nil && c.left == 0; err != nil || r.fast {
		return nil, err
	}
	return c, nil
}

// noted is try, behind a note of it if care is to be taken with the message, which
// is alone then.
func (r *offsetsRun) noted(ctx context.Context, spans []*span) (lost *span, err error) {
	if r.care == nil {
		return r.try(ctx, spans)
	}
	m := r.batch[spans[0].items[0]].Message
	died := r.care.died(m)
	if n := spans[0].m.attempts(m) + died; died > 0 && r.most >= 0 && n >= r.most {
		return nil, &cutOffError{died, n}
	}
	if err := r.care.try(ctx, m, r.most); err != nil {
		return nil, err
	}
	if lost, err = r.try(ctx, spans); err != nil {
		r.care.tried(ctx, m, r.most)
	} else {
		r.care.done(m, true)
	}
	return lost, err
}

// untried ends a message that noted did not try.
func (r *offsetsRun) untried(s *span, err error) bool {
	if e, ok := errors.AsType[*cutOffError](err); ok {
		r.ends[s.items[0]] = driver.Result{Err: e.failure(), FromHandler: true, Attempt: e.attempts}
		r.blocked[s.place] = waits(operation(s.place))
		return true
	}
	e, ok := errors.AsType[*noteError](err)
	if ok {
		r.cares.again(r.care)
		r.block(s.place, s.items, e.end(operation(s.place)))
	}
	return ok
}
