package outbox

import "time"

// hangsAfter is how long a call of Publish lasts before its messages without an answer
// count as hanging.
const hangsAfter = 500 * time.Millisecond

// topicsAtOnce is how many topics can have Options.InFlight messages each.
const topicsAtOnce = 8

// capacity returns how many messages the next Take may return, and the topics that it leaves
// out. 0: the publisher waits for answers.
//
// A topic is left out if the messages of it that hang leave few places for others. If it is
// only busy, the publisher waits, because a Take without it may read past all its messages.
func (s *session) capacity(now time.Time) (limit int, full []string) {
	most := s.p.opt.InFlight
	few := (min(s.most, most) + 1) / 2
	limit = min(s.most, topicsAtOnce*most-s.inFlight)
	hanging := map[string]int{}
	for b := range s.calls {
		if now.Sub(b.began) >= hangsAfter {
			for topic, n := range b.topics {
				hanging[topic] += n.taken - n.answered
			}
		}
	}
	for topic, n := range s.byTopic {
		switch {
		case s.outages.isPaused(topic, now): // it is left out anyway
		case most-hanging[topic] < few:
			full = append(full, topic)
		default:
			limit = min(limit, most-n)
		}
	}
	if limit < few {
		return 0, nil
	}
	return limit, full
}
