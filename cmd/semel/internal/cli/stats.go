package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
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
	sagaStoreFlag
	Name       raw  `arg:"" help:"The name of the definition; semel saga list shows the names."`
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
		case err != nil && !errors.Is(err, store.ErrCorrupt): // the counts of the others come with it
			return err
		case e.json:
			return errors.Join(err, json.NewEncoder(e.stdout).Encode(sagaStatsView{s.Stuck, s.Due, s.OldestDue.Seconds()}))
		case c.Prometheus:
			return errors.Join(err, printSagaGauges(e.stdout, string(c.Name), &s))
		}
		since := ""
		if s.Due > 0 {
			since = fmt.Sprintf("; the first has been due for %v", s.OldestDue.Truncate(time.Second))
		}
		_, printErr := fmt.Fprintf(e.stdout, "%d stuck, %d due%s\n", s.Stuck, s.Due, since)
		return errors.Join(err, printErr)
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

type sagaListCmd struct {
	sagaStoreFlag
	Name  raw  `arg:"" optional:"" help:"The name of the definition. Without it the sagas of all definitions are listed."`
	Stuck bool `name:"stuck" help:"Only sagas that wait for an operator."`
	Limit int  `name:"limit" placeholder:"N" default:"100" help:"Largest number of sagas to look at (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*sagaListCmd) Help() string {
	return `Lists the sagas that have not ended. With --json it writes one line of JSON for each saga.

With the name of a definition it lists those that are due first, and reads no other records. Without a name it lists the sagas of all definitions in no particular order, and the list does not say when they are due: it reads the records one after the other until it has --limit sagas. With --stuck it reads only the records in doubt, with and without a name, so that it is as fast in a large store as in a small one.

Examples:

    semel saga list --stuck
    semel saga list order
    semel saga list order --stuck --json
`
}

// listedSaga is a saga as semel saga list shows it.
type listedSaga struct {
	Name         string      `json:"name"` // of the definition
	Tenant       string      `json:"tenant"`
	ID           string      `json:"id"`
	State        store.State `json:"state"`        // unknown: it is stuck; released: it waits
	Due          time.Time   `json:"due,omitzero"` // when a worker goes on with it; not of a stuck one, and not in a list without a name
	Fence        uint64      `json:"fence"`
	Attempts     int         `json:"attempts"`
	Created      time.Time   `json:"created"`
	LastError    string      `json:"last_error,omitempty"`
	LastDecision string      `json:"last_decision,omitempty"` // instead of the last error
}

// sagaState is the state of a saga's record, with the word for sagas.
func sagaState(s store.State) string {
	switch s {
	case store.Unknown:
		return s.String() + " (stuck)"
	case store.Released:
		return s.String() + " (waiting)"
	}
	return s.String()
}

func (c *sagaListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 1 {
		return wrong("--limit", c.Limit, "must be at least 1")
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
		show := c.table(t)
		if e.json {
			out := json.NewEncoder(e.stdout)
			show = func(l *listedSaga) error { return out.Encode(l) }
		}
		listed, limited := 0, false
		list := func(r *store.Record, due time.Time) error {
			if r.State.Terminal() {
				return nil
			}
			listed++
			if r.State == store.Unknown { // it waits for an operator, and not for a time
				due = time.Time{}
			}
			name := strings.TrimSuffix(r.Key.Operation, protocol.SagaSuffix)
			lastError, decision := lastErrorOf(r)
			return show(&listedSaga{name, r.Key.Tenant, r.Key.Value, r.State, due, r.Fence, r.Attempt, r.Created, lastError, decision})
		}
		var err error
		if c.Name != "" && !c.Stuck {
			limited, err = c.byTimer(ctx, h, list)
		} else {
			limited, err = c.byRecord(ctx, e, h, &listed, list)
		}
		if err == nil && listed == 0 && !e.json {
			_, _ = fmt.Fprintf(e.stderr, "semel saga list: there are no such sagas%s\n", c.hint())
		}
		if limited {
			_, _ = fmt.Fprintf(e.stderr, "semel saga list: there may be more than %d; raise --limit to see them\n", c.Limit)
		}
		return errors.Join(err, t.Flush())
	})
}

// hint says where else a saga may be.
func (c *sagaListCmd) hint() string {
	if c.Name == "" {
		return "; semel inspect list --state completed,failed" + c.flags() + " | grep '" + protocol.SagaSuffix + " ' lists those that have ended"
	}
	return fmt.Sprintf(" of the definition %q; semel saga list without a name lists those of all definitions, and semel saga show shows one that has ended", string(c.Name))
}

// byTimer lists the sagas of one definition that are due first, by the index of their timers.
func (c *sagaListCmd) byTimer(ctx context.Context, h storeurl.Handle, list func(*store.Record, time.Time) error) (limited bool, err error) {
	timers, ok := store.As[store.Timers](h)
	if !ok {
		return false, errors.New("this store keeps no sagas")
	}
	due, _, err := timers.DueTimers(ctx, saga.Key(string(c.Name), "", "").Operation, 200*365*24*time.Hour, c.Limit)
	for _, t := range due {
		f, getErr := h.Get(ctx, t.Key)
		switch {
		case errors.Is(getErr, store.ErrNotFound):
		case errors.Is(getErr, store.ErrCorrupt):
			err = cmp.Or(err, getErr)
		case getErr != nil:
			return false, getErr
		default:
			if listErr := list(&f.Record, t.Due); listErr != nil {
				return false, listErr
			}
		}
	}
	return len(due) == c.Limit, err
}

// byRecord lists the sagas of all definitions, or of one, in no order. It finds stuck sagas among
// the records in doubt, because the timers of many others can be due before theirs.
func (c *sagaListCmd) byRecord(ctx context.Context, e *env, h storeurl.Handle, listed *int, list func(*store.Record, time.Time) error) (limited bool, err error) {
	l, ok := store.As[store.Lister](h)
	if !ok {
		return false, errors.New("this store cannot be searched; name the definition, without --stuck: semel saga list NAME")
	}
	defer sayStillReading(e, "semel saga list")()
	filter := store.Filter{States: []store.State{store.Unknown}}
	if c.Name != "" {
		filter.Operation = saga.Key(string(c.Name), "", "").Operation
	}
	if !c.Stuck {
		filter.States = append(filter.States, store.Started, store.Processing, store.Released)
	}
	for f, listErr := range l.List(ctx, filter) {
		switch {
		case errors.Is(listErr, store.ErrCorrupt):
			err = cmp.Or(err, listErr) // the first
		case listErr != nil:
			return false, listErr
		case !protocol.IsSaga(f.Record.Key):
		case *listed == c.Limit:
			return true, err
		default:
			if listErr := list(&f.Record, time.Time{}); listErr != nil {
				return false, listErr
			}
		}
	}
	return false, err
}

func (c *sagaListCmd) table(w io.Writer) func(*listedSaga) error {
	begun := false
	return func(l *listedSaga) error {
		if !begun {
			begun = true
			if err := row(w, "STATE", "NAME", "TENANT", "ID", "FENCE", "ATTEMPTS", "DUE", "LAST ERROR"); err != nil {
				return err
			}
		}
		due := ""
		if !l.Due.IsZero() {
			due = l.Due.Format(time.RFC3339)
		}
		return row(w, sagaState(l.State), l.Name, l.Tenant, l.ID, fmt.Sprint(l.Fence), fmt.Sprint(l.Attempts), due, shortSaga(l.LastError))
	}
}
