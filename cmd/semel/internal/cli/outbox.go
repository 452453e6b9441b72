package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/cmd/semel/internal/audit"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/outbox"
)

// messageView is a message as operators see it.
type messageView struct {
	Position  int64       `json:"position"`
	State     string      `json:"state"`
	Topic     string      `json:"topic"`
	OrderKey  string      `json:"order_key,omitempty"`
	ID        string      `json:"id"`
	Call      string      `json:"call,omitempty"` // the hash that logs show
	Written   time.Time   `json:"written"`
	Sent      time.Time   `json:"sent,omitzero"`
	Attempts  int         `json:"attempts"`
	LastError string      `json:"last_error,omitempty"`
	Headers   [][2]string `json:"headers,omitempty"`
	Bytes     *int        `json:"bytes,omitempty"`
	Body      string      `json:"body,omitempty"`

	BodyBase64 string `json:"body_base64,omitempty"`
}

func messageViewOf(e *outbox.Entry) messageView {
	return messageView{
		Position: e.Position, State: e.State.String(), Topic: e.Topic, OrderKey: e.OrderKey, ID: e.ID, Call: outbox.ShortCall(e.Call),
		Written: e.Written, Sent: e.Sent, Attempts: e.Attempts, LastError: e.LastError,
	}
}

type outboxListCmd struct {
	outboxFlags
	State string `name:"state" placeholder:"STATE" default:"" enum:",waiting,held,quarantined,sent" help:"waiting, held (failed, or after a failed one of their order key), quarantined or sent. Without it and --call: quarantined."`
	Call  string `name:"call" placeholder:"HASH" help:"Only messages that the handler of this call has written, of all states. HASH is the one that logs and the console show."`
	After int64  `name:"after" placeholder:"POSITION" default:"0" help:"Only messages after this position; not with --call."`
	Limit int    `name:"limit" placeholder:"N" default:"100" help:"Largest number of messages to list (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*outboxListCmd) Help() string {
	return `Lists messages of one state in the order of their positions. With --json it writes one line of JSON for each; otherwise it also counts the messages that are not sent, on standard error. Without --state it lists the quarantined ones, which wait for an operator. With --call it lists the messages of one call, quarantined and held ones first. Several calls can have one hash of 8 digits by chance.

Examples:

    semel outbox list --store postgres://app@db/shop
    semel outbox list --state waiting --limit 10 --json
    semel outbox list --call 4f1a0b2c
`
}

func (c *outboxListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 1 {
		return wrong("--limit", c.Limit, "must be at least 1")
	}
	if c.Call != "" && (c.State != "" || c.After != 0) {
		return wrong("--call", c.Call, "lists the messages of all states and positions; leave out --state and --after")
	}
	c.State = cmp.Or(c.State, outbox.Quarantined.String())
	return c.with(ctx, func(b storeurl.Outbox) error {
		entries, err := c.find(ctx, b)
		if err != nil {
			return err
		}
		if e.json {
			out := json.NewEncoder(e.stdout)
			for i := range entries {
				if err := out.Encode(messageViewOf(&entries[i])); err != nil {
					return err
				}
			}
			return nil
		}
		if err := c.table(e, entries); err != nil {
			return err
		}
		return c.count(ctx, e, b, len(entries) == 0)
	})
}

// find lists the messages of the call or, without one, of the state.
func (c *outboxListCmd) find(ctx context.Context, b outbox.Inspector) ([]outbox.Entry, error) {
	if c.Call == "" {
		state, err := outbox.ParseState(c.State)
		if err != nil {
			return nil, err
		}
		return b.List(ctx, state, c.After, c.Limit)
	}
	if _, _, err := outbox.CallRange(c.Call); err != nil {
		return nil, wrong("--call", c.Call, "must be the hash of a call that logs show: 8 hexadecimal digits")
	}
	return b.ListCall(ctx, c.Call, c.Limit)
}

func (c *outboxListCmd) table(e *env, entries []outbox.Entry) error {
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for i := range entries {
		if i == 0 {
			if err := row(t, "POSITION", "STATE", "TOPIC", "ORDER KEY", "ID", "CALL", "WRITTEN", "ATTEMPTS", "LAST ERROR"); err != nil {
				return err
			}
		}
		m := &entries[i]
		if err := row(t, fmt.Sprint(m.Position), m.State.String(), m.Topic, m.OrderKey, m.ID, outbox.ShortCall(m.Call), m.Written.UTC().Format(time.RFC3339), fmt.Sprint(m.Attempts), short(m.LastError)); err != nil {
			return err
		}
	}
	return t.Flush()
}

// count writes how many messages there are and, after an empty list, the options that list
// the messages in other states.
func (c *outboxListCmd) count(ctx context.Context, e *env, b storeurl.Outbox, empty bool) error {
	s, err := b.Stats(ctx)
	if err != nil {
		return err
	}
	if empty {
		text := "semel outbox list: there are no such messages"
		switch {
		case c.Call != "":
			text = "semel outbox list: there is no message of call " + c.Call
		case c.After == 0:
			text = "semel outbox list: no message is " + c.State
		}
		for _, other := range []struct {
			state string
			count int64
		}{{"quarantined", s.Quarantined}, {"held", s.Held}, {"waiting", s.Waiting}} {
			if c.Call == "" && other.state != c.State && other.count > 0 {
				text += fmt.Sprintf("; --state %s lists %d", other.state, other.count)
			}
		}
		if _, err := fmt.Fprintln(e.stderr, text); err != nil {
			return err
		}
	}
	return printStats(e.stderr, &s)
}

// positionArg names one message.
type positionArg struct {
	Position int64 `arg:"" help:"The position that semel outbox list shows."`
}

type outboxShowCmd struct {
	outboxFlags
	positionArg
	ShowBody bool `name:"show-body" help:"The headers and the body, too."`
}

// Help implements kong.HelpProvider.
func (*outboxShowCmd) Help() string {
	return `Shows one message. A body that is no text is shown in base64.

Example:

    semel outbox show 4711 --show-body --json
`
}

func (c *outboxShowCmd) Run(ctx context.Context, e *env) error {
	return c.with(ctx, func(b storeurl.Outbox) error {
		m, err := b.Get(ctx, c.Position)
		if err != nil {
			return err
		}
		v, size := messageViewOf(&m), len(m.Body)
		v.Bytes = &size
		if c.ShowBody {
			for _, h := range m.Headers {
				v.Headers = append(v.Headers, [2]string{h.Name, h.Value})
			}
			if v.Body = string(m.Body); !utf8.Valid(m.Body) {
				v.Body, v.BodyBase64 = "", base64.StdEncoding.EncodeToString(m.Body)
			}
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(v)
		}
		return v.print(e)
	})
}

// print writes the message for people, a field a line.
func (v *messageView) print(e *env) error {
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(t, "%s:\t%s\n", clean(name), clean(value)) // Flush tells what went wrong
		}
	}
	line("position", fmt.Sprint(v.Position))
	line("state", v.State)
	line("topic", v.Topic)
	line("order key", v.OrderKey)
	line("id", v.ID)
	line("call", v.Call)
	line("written", v.Written.Format(time.RFC3339Nano))
	if !v.Sent.IsZero() {
		line("sent", v.Sent.Format(time.RFC3339Nano))
	}
	line("attempts", fmt.Sprint(v.Attempts))
	line("last error", v.LastError)
	line("bytes", fmt.Sprint(*v.Bytes))
	for _, h := range v.Headers {
		line("  "+h[0], h[1])
	}
	for text := range strings.Lines(v.Body) {
		line("body", text)
	}
	line("body (base64)", v.BodyBase64)
	return t.Flush()
}

// changeFlags are common to the commands that change a message.
type changeFlags struct {
	outboxFlags
	positionArg
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"The reason. The log keeps it."`
}

// change makes a change, and logs who has made it, and why.
func (c *changeFlags) change(ctx context.Context, e *env, act, done string, fn func(storeurl.Outbox) error) error {
	if strings.TrimSpace(c.Reason) == "" {
		return wrong("--reason", "", "must not be empty")
	}
	return c.with(ctx, func(b storeurl.Outbox) error {
		result, err := e.act(audit.Act{Act: act, Store: storeName(c.Store), Position: c.Position, Reason: c.Reason}, func() error { return fn(b) })
		e.logAct(act, result, err, "position", c.Position, "reason", c.Reason)
		if err != nil {
			return err
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(map[string]any{"position": c.Position, "result": result})
		}
		_, err = fmt.Fprintf(e.stdout, "%s: message %d\n", done, c.Position)
		return err
	})
}

type outboxRetryCmd struct{ changeFlags }

// Help implements kong.HelpProvider.
func (*outboxRetryCmd) Help() string {
	return `Makes the order key of a held or quarantined message due at once: a publisher sends the key's first message again, and after it the later ones in order. Each use writes one line of JSON to standard error with the operator, the reason and the result.

Example:

    semel outbox retry 4711 --reason "the topic exists now"
`
}

func (c *outboxRetryCmd) Run(ctx context.Context, e *env) error {
	return c.change(ctx, e, acts.OutboxRetry, "due", func(b storeurl.Outbox) error { return b.Retry(ctx, c.Position) })
}

type outboxDropCmd struct{ changeFlags }

// Help implements kong.HelpProvider.
func (*outboxDropCmd) Help() string {
	return `Deletes a message that is not sent. It will not be published, unless a publisher is sending it at this moment, and the later messages of its order key go on without it. Look at it first (semel outbox show --show-body), because nothing keeps it. Each use writes one line of JSON to standard error with the operator, the reason and the result.

Example:

    semel outbox drop 4711 --reason "the customer has closed the account"
`
}

func (c *outboxDropCmd) Run(ctx context.Context, e *env) error {
	return c.change(ctx, e, acts.OutboxDrop, "dropped", func(b storeurl.Outbox) error { return b.Drop(ctx, c.Position) })
}
