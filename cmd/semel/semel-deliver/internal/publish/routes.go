package publish

import (
	"context"

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
// messages of other topics to a default sink. Each topic with a route gets a call of its own,
// because two topics with one new name must not share their order keys.
func Routes(byTopic map[string]Route, other outbox.Sink) outbox.Sink {
	if len(byTopic) == 0 {
		return other
	}
	sinks := map[string]outbox.Sink{"": other}
	for topic, route := range byTopic {
		sinks[topic] = route.Sink
		if route.Topic != "" {
			sinks[topic] = renamed{route.Topic, route.Sink}
		}
	}
	return outbox.ByTopic(sinks)
}

// renamed is a sink of messages that get another topic.
type renamed struct {
	topic string
	sink  outbox.Sink
}

// Publish implements outbox.Sink.
func (r renamed) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	named := make([]outbox.Message, len(messages))
	for i := range messages {
		named[i] = messages[i].Renamed(r.topic)
	}
	r.sink.Publish(ctx, named, answer)
}
