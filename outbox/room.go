package outbox

import "time"

// hangsAfter is how long a call of Publish lasts before its messages without an answer
// count as hanging, so that the publisher does not wait for the room that they take.
const hangsAfter = 500 * time.Millisecond

// room returns how many messages the next Take may return, and the topics that it leaves
// out. 0: the publisher waits for more room, so that a request is worth it.
//
// A topic gets at most half of the room that the other topics leave. It is left out if it
// is stuck: its messages that hang are more than half of the room beside all that hang. A
// topic that is only busy is not, because a Take without it may read past all its messages.
func (s *session) room(now time.Time) (limit int, stuck []string) {
	left, usable := s.p.opt.InFlight, s.p.opt.InFlight // without all open messages, without those that hang
	for b := range s.calls {
		left -= b.open
		if b.hangs(now) {
			usable -= b.open
		}
	}
	enough := max(1, min(s.most/2, usable/8))
	limit = min(s.most, s.p.opt.InFlight-s.flying, (left+1)/2)
	if limit < enough {
		return 0, nil
	}
	open, hanging := map[string]int{}, map[string]int{}
	for b := range s.calls {
		for topic, n := range b.topics {
			open[topic] += n.taken - n.answered
			if b.hangs(now) {
				hanging[topic] += n.taken - n.answered
			}
		}
	}
	for topic, n := range open {
		if hanging[topic] > usable/2 {
			stuck = append(stuck, topic)
		} else {
			limit = min(limit, (left-n+1)/2)
		}
	}
	if limit < enough {
		return 0, nil
	}
	return limit, stuck
}

func (b *sending) hangs(now time.Time) bool { return now.Sub(b.began) >= hangsAfter }
