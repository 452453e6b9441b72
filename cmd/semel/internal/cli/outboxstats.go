package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/outbox"
)

type outboxStatsCmd struct{ outboxFlags }

// Help implements kong.HelpProvider.
func (*outboxStatsCmd) Help() string {
	return `Counts the messages that wait, are held or are in the quarantine, and the order keys that wait for an operator, and tells the age of the oldest message that waits or is held. It does not read sent messages. A publisher reports the same numbers, and how many messages it sends, in its metrics: semel outbox publish --admin-listen.

Example:

    semel outbox stats --store postgres://app@db/shop --json
`
}

// statsView is a count of the messages as operators see it.
type statsView struct {
	Waiting       int64   `json:"waiting"`
	Held          int64   `json:"held"`
	Quarantined   int64   `json:"quarantined"`
	StoppedKeys   int64   `json:"stopped_keys"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

func (c *outboxStatsCmd) Run(ctx context.Context, e *env) error {
	return c.with(ctx, func(b storeurl.Outbox) error {
		s, err := b.Stats(ctx)
		if err != nil {
			return err
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(statsView{s.Waiting, s.Held, s.Quarantined, s.StoppedKeys, s.OldestAge.Seconds()})
		}
		return printStats(e.stdout, &s)
	})
}

// printStats writes a count in one line.
func printStats(w io.Writer, s *outbox.Stats) error {
	_, err := fmt.Fprintf(w, "%d waiting, %d held, %d quarantined; %d order keys are stopped; the oldest message that waits or is held is %v old\n",
		s.Waiting, s.Held, s.Quarantined, s.StoppedKeys, s.OldestAge.Truncate(time.Second))
	return err
}
