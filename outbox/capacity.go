package outbox

import "time"

// hangsAfter is how long a call of Publish lasts before its messages without an answer
// count as hanging.
const hangsAfter = 500 * time.Millisecond

// topicsAtOnce is how many topics can have Options.InFlight places each.
const topicsAtOnce = 8

// placeSize is how many bytes of a body one place is for: a larger message takes several, so
// that 512 places are about 64 MiB at most.
const placeSize = 128 << 10

// firstTake is how many messages a Take reads at first. Each further one reads twice as many.
const firstTake = 16

func placesOf(m *Message) int { return 1 + len(m.Body)/placeSize }

// capacity returns how many messages the next Take may return, and the topics that it leaves
// out. 0: the publisher waits for answers.
//
// A topic is left out if the messages of it that hang leave few places for others. If it is
// only busy, the publisher waits, because a Take without it may read past all its messages.
func (s *session) capacity(now time.Time) (limit int, full []string) {
	most := s.p.opt.InFlight
	limit = min(s.most*s.largest, most) // all messages may have one topic
	few := (limit + 1) / 2
	hanging := map[string]int{}
	for b := range s.calls {
		if now.Sub(b.began) >= hangsAfter {
			for topic, n := range b.topics {
				hanging[topic] += n.places
			}
		}
	}
	free := topicsAtOnce * most
	for topic, n := range s.byTopic {
		free -= min(n, most) // large messages may have more places than their topic
		switch {
		case s.outages.isPaused(topic, now): // it is left out anyway
		case most-hanging[topic] < few:
			full = append(full, topic)
		default:
			limit = min(limit, most-n)
		}
	}
	if limit = min(limit, free); limit < few {
		return 0, nil
	}
	return max(1, limit/s.largest), full
}
