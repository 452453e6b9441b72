package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/saga"
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
	oldest := ""
	if s.Waiting+s.Held > 0 {
		oldest = fmt.Sprintf("; the oldest message that waits or is held is %v old", s.OldestAge.Truncate(time.Second))
	}
	_, err := fmt.Fprintf(w, "%d waiting, %d held, %d quarantined; stopped order keys: %d%s\n", s.Waiting, s.Held, s.Quarantined, s.StoppedKeys, oldest)
	return err
}

type sagaStatsCmd struct {
	storeFlag
	Name       raw  `arg:"" help:"The name of the definition."`
	Prometheus bool `name:"prometheus" help:"Write the counts in the text format of Prometheus."`
}

// Help implements kong.HelpProvider.
func (*sagaStatsCmd) Help() string {
	return fmt.Sprintf(`Counts the sagas of a definition that are stuck, which wait for an operator, and those that are due, which a worker should take up now; and tells for how long the first of them has been due, which grows if no worker runs. It reads no other sagas. A count that is %d may be larger.

With --prometheus it writes the gauges semel_saga_stuck, semel_saga_due and semel_saga_oldest_due_seconds, for example for the textfile collector of node_exporter.

Examples:

    semel saga stats order --json
    semel saga stats order --prometheus --store postgres://app@db/shop
`, saga.MaxStats)
}

// sagaStatsView is a count of sagas as operators see it.
type sagaStatsView struct {
	Stuck            int     `json:"stuck"`
	Due              int     `json:"due"`
	OldestDueSeconds float64 `json:"oldest_due_seconds"`
}

func (c *sagaStatsCmd) Run(ctx context.Context, e *env) error {
	if c.Prometheus && e.json {
		return wrong("--prometheus", "with --json", "must be left out, or --json")
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		s, err := saga.ReadStats(ctx, h, string(c.Name))
		switch {
		case err != nil:
			return err
		case e.json:
			return json.NewEncoder(e.stdout).Encode(sagaStatsView{s.Stuck, s.Due, s.OldestDue.Seconds()})
		case c.Prometheus:
			return printSagaGauges(e.stdout, string(c.Name), &s)
		}
		since := ""
		if s.Due > 0 {
			since = fmt.Sprintf("; the first has been due for %v", s.OldestDue.Truncate(time.Second))
		}
		_, err = fmt.Fprintf(e.stdout, "%d stuck, %d due%s\n", s.Stuck, s.Due, since)
		return err
	})
}

// labelEscaper escapes the value of a label.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// printSagaGauges writes a count in the text format of Prometheus.
func printSagaGauges(w io.Writer, name string, s *saga.Stats) error {
	var b strings.Builder
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"stuck", "Sagas that wait for an operator.", float64(s.Stuck)},
		{"due", "Sagas that a worker should take up now.", float64(s.Due)},
		{"oldest_due_seconds", "How long the first saga that is due has been due.", s.OldestDue.Seconds()},
	} {
		fmt.Fprintf(&b, "# HELP semel_saga_%s %s\n# TYPE semel_saga_%s gauge\nsemel_saga_%s{saga=\"%s\"} %v\n", g.name, g.help, g.name, g.name, labelEscaper.Replace(name), g.value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
