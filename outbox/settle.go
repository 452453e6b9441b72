package outbox

import (
	"context"
	"errors"
	"strings"
	"time"
)

// errNoAnswer is the answer for a message to which the sink has given none.
var errNoAnswer = errors.New("outbox: the sink returned without an answer")

type settleReply struct {
	results []Result
	err     error
}

// settle records the results that have come since the last settlement.
func (s *session) settle(ctx context.Context) {
	if s.settling || len(s.results) == 0 {
		return
	}
	results := s.results
	s.results, s.settling = nil, true
	go func() {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err := s.p.store.Settle(limited, results)
		if err != nil {
			select {
			case <-time.After(settlePause):
			case <-ctx.Done():
			}
		}
		s.settled <- settleReply{results, err}
	}()
}

const settlePause = 100 * time.Millisecond

// onSettle frees the messages whose results are recorded, or queues the results again.
func (s *session) onSettle(ctx context.Context, r settleReply) {
	s.settling = false
	if r.err != nil {
		s.p.observe(ctx, Event{Kind: EventStoreFailed, Lane: -1, Err: r.err})
		if s.stopped { // another publisher repeats them
			r.err = nil
		} else {
			s.results = append(r.results, s.results...)
			return
		}
	}
	for i := range r.results {
		t := r.results[i].Taken
		c := s.busy[t.Order]
		c.unsettled--
		s.free(t, c)
	}
}

// abandon ends the session's wait for a sink that ignores its context. The messages
// without an answer are sent again by another publisher.
func (s *session) abandon() {
	clear(s.calls)
	s.answers = make(chan answer)
}

// oneLine is an error's text as a store keeps it: short, in one line, valid UTF-8.
func oneLine(text string) string {
	const limit = 1000 // bytes
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
