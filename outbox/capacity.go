package outbox

import "time"

// hangsAfter is how long a call of Publish lasts before its messages without an answer
// count as hanging, so that the publisher does not wait for their places.
const hangsAfter = 500 * time.Millisecond

// capacity returns how many messages the next Take may return, and the topics that it leaves
// out. 0: the publisher waits for more free places in flight, so that a request is worth it.
//
// A topic gets at most half of the places that the other topics leave free. It is left out if
// it is stuck: of the places without the messages that hang, its own that hang would fill
// more than half. A topic that is only busy is not, because a Take without it may read past all
// its messages. If such a Take has found nothing, nothing else needs the places for a while.
func (s *session) capacity(now time.Time) (limit int, stuck []string) {
	free, usable := s.p.opt.InFlight, s.p.opt.InFlight // places without open messages, and without those that hang
	for b := range s.calls {
		free -= b.open
		if b.hangs(now) {
			usable -= b.open
		}
	}
	if now.Before(s.noOther) {
		if limit = min(s.most, s.p.opt.InFlight-s.flying); limit < max(1, min(s.most, s.p.opt.InFlight)/2) {
			return 0, nil
		}
		return limit, nil
	}
	enough := max(1, min(s.most/2, usable/8))
	limit = min(s.most, s.p.opt.InFlight-s.flying, (free+1)/2)
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
			limit = min(limit, (free-n+1)/2)
		}
	}
	if limit < enough {
		return 0, nil
	}
	return limit, stuck
}

func (b *sending) hangs(now time.Time) bool { return now.Sub(b.began) >= hangsAfter }
