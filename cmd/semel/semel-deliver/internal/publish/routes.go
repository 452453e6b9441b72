package publish

import (
	"context"
	"sync"

	"github.com/semel-go/semel/outbox"
)

// Route says where the messages of a topic go.
type Route struct {
	// Topic replaces the topic of the messages. Empty: they keep their own.
	Topic string
	// Sink sends the messages.
	Sink outbox.Sink
}

// Routes is a sink that sends the messages of each topic by the route of that topic, and
// messages of other topics to a default sink.
func Routes(byTopic map[string]Route, other outbox.Sink) outbox.Sink {
	if len(byTopic) == 0 {
		return other
	}
	return &routes{byTopic, other}
}

type routes struct {
	byTopic map[string]Route
	other   outbox.Sink
}

// Publish implements outbox.Sink. Each topic with a route gets a call of its own, because
// two topics with one new name must not share their order keys.
func (r *routes) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	indexes := map[string][]int{} // by topic; "" for topics without a route
	for i := range messages {
		topic := messages[i].Topic
		if _, ok := r.byTopic[topic]; !ok {
			topic = ""
		}
		indexes[topic] = append(indexes[topic], i)
	}
	var all sync.WaitGroup
	for topic, mine := range indexes {
		route, ok := r.byTopic[topic]
		if !ok {
			route.Sink = r.other
		}
		part := make([]outbox.Message, len(mine))
		for n, i := range mine {
			part[n] = messages[i]
			if route.Topic != "" {
				part[n] = messages[i].Renamed(route.Topic)
			}
		}
		all.Go(func() {
			route.Sink.Publish(ctx, part, func(n int, err error) { answer(mine[n], err) })
		})
	}
	all.Wait()
}
