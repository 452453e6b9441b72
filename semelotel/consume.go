package semelotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/semel-go/semel/consume"
)

// ObserveMessages makes a consume.Options.Observe. It calls next, too. Nil:
// consume.LogEvents(nil), which is the default of consume.Options.
func (t *Telemetry) ObserveMessages(next func(context.Context, consume.Event)) func(context.Context, consume.Event) {
	if next == nil {
		next = consume.LogEvents(nil)
	}
	return func(ctx context.Context, e consume.Event) {
		if e.Kind == consume.EventDecided {
			labels := metric.WithAttributeSet(attribute.NewSet(
				attribute.String("semel.message.action", e.Disposition.Action.String()), attribute.String("semel.message.reason", string(e.Disposition.Reason))))
			t.messages.Add(ctx, 1, labels)
			t.messageTries.Record(ctx, e.Took.Seconds(), labels)
		} else {
			t.events.Add(ctx, 1, metric.WithAttributes(attribute.String("semel.message.event", strings.ReplaceAll(e.Kind.String(), " ", "_"))))
		}
		next(ctx, e)
	}
}
