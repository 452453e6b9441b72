package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

var errNoOutbox = notFound("This console shows no outbox.")

// messages lists the messages of one state.
func (c *Console) messages(ctx context.Context, r *http.Request) (any, error) {
	if c.options.Outbox == nil {
		return nil, errNoOutbox
	}
	data := struct {
		State   string
		States  []string
		Entries []outbox.Entry
		Next    int64 // the last position, if there may be more
		Stats   outbox.Stats
		Now     time.Time `json:"-"`
	}{State: r.URL.Query().Get("state"), Now: time.Now()}
	for _, s := range []outbox.State{outbox.Waiting, outbox.Held, outbox.Quarantined, outbox.Sent} {
		data.States = append(data.States, s.String())
	}
	if data.State == "" {
		data.State = outbox.Quarantined.String()
	}
	state, err := outbox.ParseState(data.State)
	if err != nil {
		return nil, badInput(fmt.Sprintf("There is no state %q; choose %s.", data.State, strings.Join(data.States, ", ")))
	}
	after, err := strconv.ParseInt("0"+r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		return nil, badInput("The position to begin after is not a number.")
	}
	if data.Stats, err = c.options.Outbox.Stats(ctx); err != nil {
		return nil, err
	}
	data.Stats.OldestAge = data.Stats.OldestAge.Truncate(time.Minute) // a live page changes with it
	if data.Entries, err = c.options.Outbox.List(ctx, state, after, mostRows); err != nil {
		return nil, err
	}
	if len(data.Entries) == mostRows {
		data.Next = data.Entries[mostRows-1].Position
	}
	return data, nil
}

// callMessages are the messages that the handler of a call has written.
type callMessages struct {
	Entries []outbox.Entry
	Call    string // its hash as logs show it, if there are more than mostRows
	IsDown  bool   // the outbox did not answer
	Down    string `json:"-"` // its error, whose text can differ each time
}

// messagesOf lists the messages of the call whose record has the key k. If the outbox does not
// answer within searchTime, the page of the record shows the rest.
func (c *Console) messagesOf(ctx context.Context, k store.Key) (m callMessages) {
	if c.options.Outbox == nil {
		return m
	}
	within, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var err error
	if m.Entries, err = c.options.Outbox.ListCall(within, outbox.CallHash(k), mostRows+1); err != nil {
		m.IsDown, m.Down = true, err.Error()
	}
	if len(m.Entries) > mostRows {
		m.Entries, m.Call = m.Entries[:mostRows], k.Short()
	}
	return m
}

// message shows one message.
func (c *Console) message(ctx context.Context, r *http.Request) (any, error) {
	if c.options.Outbox == nil {
		return nil, errNoOutbox
	}
	position, err := strconv.ParseInt(r.URL.Query().Get("position"), 10, 64)
	if err != nil {
		return nil, badInput("The address names no message: it needs a position, which is a number.")
	}
	data := struct {
		outbox.Entry
		Size int
		Text string
		Now  time.Time `json:"-"`
	}{Now: time.Now()}
	if data.Entry, err = c.options.Outbox.Get(ctx, position); err != nil {
		return nil, err
	}
	data.Size = len(data.Body)
	if c.options.ShowBodies {
		data.Text = text(data.Body)
	} else {
		data.Headers = nil
	}
	data.Body = nil
	return data, nil
}

// changeMessage carries out a form of the message's page.
func (c *Console) changeMessage(ctx context.Context, operator string, form url.Values) (which string, err error) {
	if c.options.Outbox == nil {
		return "", errNoOutbox
	}
	position, err := strconv.ParseInt(form.Get("position"), 10, 64)
	if err != nil {
		return "", badInput("The form names no message: it needs a position, which is a number.")
	}
	reason, err := reasonIn(form)
	if err != nil {
		return "", err
	}
	verb, act := form.Get("act"), Act{Operator: operator, Reason: reason, Position: position}
	var carryOut func(context.Context, int64) error
	switch verb {
	case "retry":
		act.Verb, carryOut = acts.OutboxRetry, c.options.Outbox.Retry
	case "drop":
		act.Verb, carryOut = acts.OutboxDrop, c.options.Outbox.Drop
	default:
		return "", badInput(fmt.Sprintf("There is no action %q; choose retry or drop.", verb))
	}
	return verb, c.audited(ctx, act, func() error {
		// The operator has judged a message in the state that the page has shown. Somebody else
		// may have decided since.
		now, err := c.options.Outbox.Get(ctx, position)
		if err == nil && now.State.String() != form.Get("state") {
			err = outbox.ErrState
		}
		if err != nil {
			return err
		}
		return carryOut(ctx, position)
	})
}
