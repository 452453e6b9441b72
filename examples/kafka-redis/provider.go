package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

type mail struct {
	ID   string `json:"id"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// provider sends mails for us. It knows idempotency keys: a request whose key
// it has seen is answered, and no second mail is sent.
type provider struct {
	url    string
	client *http.Client
}

// notify is the handler. Its effect is elsewhere, so no transaction can hold
// it: if the answer is lost, nobody here knows whether the mail was sent, and
// the next attempt asks again. The key is derived from the run's, and so it is
// the same for each attempt, by whichever process.
func (p *provider) notify(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	var n mail
	if err := json.Unmarshal(m.Body, &n); err != nil {
		return semel.Final(err) // to the dead letters; any other error: again later
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(m.Body))
	if err != nil {
		return semel.Final(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", x.DownstreamKey("mail"))
	res, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // its status says all
	switch {
	case res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return fmt.Errorf("the provider answers %s", res.Status)
	}
	return semel.Final(fmt.Errorf("the provider refuses: %s", res.Status))
}
