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

// provider is the mail provider. It supports idempotency keys: it answers a request
// whose key it has seen before, and sends no second mail.
type provider struct {
	url    string
	client *http.Client
}

// notify is the handler. Its effect is in another system, so no transaction can
// include it: if the answer is lost, this program does not know whether the mail
// was sent, and the next attempt sends the request again. The key is derived from
// the message's key, so it is the same for each attempt in each process.
func (p *provider) notify(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	var n mail
	if err := json.Unmarshal(m.Body, &n); err != nil {
		return semel.Final(err) // to the dead letters; another error is tried again later
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
	defer func() { _ = res.Body.Close() }() // the body is not read
	switch {
	case res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return fmt.Errorf("the provider answers %s", res.Status)
	}
	return semel.Final(fmt.Errorf("the provider refuses: %s", res.Status))
}
