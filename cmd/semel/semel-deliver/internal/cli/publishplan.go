package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/address"
	"github.com/semel-go/semel/outbox"
)

// publishPlan is the checked configuration of publish.
type publishPlan struct {
	store     storeurl.URL
	to        *address.Sink
	topics    map[string]topicPlan
	webhook   *address.SinkOptions // the transport is missing
	files     tlsfile.Files
	publisher outbox.Options
}

// topicPlan is where a topic goes: to another name, or to another destination.
type topicPlan struct {
	name string
	to   *address.Sink
}

// publishPlanner collects the mistakes in the options.
type publishPlanner struct {
	*publishOptions
	mistakes
}

// plan checks all options and reports every mistake.
func (o *publishOptions) plan() (*publishPlan, error) {
	p := &publishPlanner{publishOptions: o}
	out := &publishPlan{topics: map[string]topicPlan{}, files: tlsfile.Files{Cert: o.ToCert, Key: o.ToKey, CA: o.ToCA}}
	out.webhook = &address.SinkOptions{
		Secret: p.secret(), Header: p.header("header", o.Header, p.ownHeader), Timeout: p.span("timeout", o.Timeout, time.Millisecond, time.Hour),
	}
	var err error
	if o.To == "" {
		p.bad("to", "", "is required: the destination, such as kafka://127.0.0.1:9092, amqp://127.0.0.1, nats://127.0.0.1, sqs://?region=eu-west-1 or https://example.org/hook")
	} else {
		out.to, err = address.ParseSink(o.To, "--to", out.webhook)
		p.failed(err)
	}
	for _, text := range o.Topic {
		p.topic(out, text)
	}
	p.webhookOnly(out)
	out.store, err = storeurl.Parse(o.Store, "--store")
	p.failed(err)
	_, migrations := out.store.Migrations()
	if err == nil && !migrations {
		p.bad("store", out.store, "has no outbox; choose sqlite:PATH or postgres://USER@HOST/DATABASE")
	}
	p.span("to-idle", o.ToIdle, 0, time.Hour)
	p.tlsFiles("to", out.files, !p.inClear())
	if o.AdminListen != "" {
		p.address("admin-listen", o.AdminListen)
	}
	p.count("max-attempts", int64(o.MaxAttempts), 0, 1_000_000)
	p.count("batch", int64(o.Batch), 1, 10_000)
	p.count("in-flight", int64(o.InFlight), int64(max(1, o.Batch)), 1_000_000)
	out.publisher = outbox.Options{
		Name: o.Name, Lease: p.span("lease", o.Lease, time.Second, time.Hour), Batch: o.Batch, InFlight: o.InFlight,
		Poll: p.span("poll", o.Poll, 0, time.Hour), MaxAttempts: o.MaxAttempts,
		Retention: p.span("retention", o.Retention, 0, 3650*24*time.Hour), Drain: p.span("drain", o.Drain, time.Millisecond, time.Hour),
	}
	return out, errors.Join(p.errs...)
}

// topic reads NAME=WHERE.
func (p *publishPlanner) topic(out *publishPlan, text string) {
	name, where, ok := strings.Cut(text, "=")
	if _, twice := out.topics[name]; !ok || name == "" || where == "" || twice {
		if strings.Contains(text, "://") {
			text = name // the address may have a password
		}
		p.bad("topic", text, "write NAME=WHERE once for each topic, where WHERE is another name, such as shop.orders, or the URL of another destination")
		return
	}
	t := topicPlan{name: where}
	if strings.Contains(where, "://") {
		var err error
		t.name = ""
		t.to, err = address.ParseSink(where, "--topic "+name, out.webhook)
		p.failed(err)
	}
	out.topics[name] = t
}

// inClear reports whether there are webhooks, and none has TLS.
func (p *publishPlanner) inClear() bool {
	to := []string{p.To}
	for _, text := range p.Topic {
		_, where, _ := strings.Cut(text, "=")
		to = append(to, where)
	}
	has := func(scheme string) bool {
		return slices.ContainsFunc(to, func(where string) bool { return strings.HasPrefix(where, scheme) })
	}
	return has("http:") && !has("https:")
}

// webhookOnly refuses options of webhooks if there is none.
func (p *publishPlanner) webhookOnly(out *publishPlan) {
	for _, t := range out.topics {
		if t.to != nil && t.to.Kind == "http" {
			return
		}
	}
	if out.to == nil || out.to.Kind == "http" {
		return
	}
	for _, f := range []struct{ flag, value string }{
		{"secret-file", p.SecretFile}, {"header", strings.Join(p.Header, "")}, {"to-ca", p.ToCA}, {"to-cert", p.ToCert}, {"to-key", p.ToKey},
	} {
		if f.value != "" {
			p.bad(f.flag, "", "is for destinations of http:// and https:// only; the options of %s:// go into its URL", out.to.Kind)
		}
	}
}

// The largest file of a secret, and the least bytes of a secret.
const (
	largestSecret = 4 << 10
	leastSecret   = 24
)

// makeSecret says how to make the file of the secret.
const makeSecret = "make it with: (umask 077; echo whsec_$(openssl rand -base64 32) > %s)"

// secret reads the file of the secret. Errors contain no part of it.
func (p *publishPlanner) secret() []byte {
	if p.SecretFile == "" {
		return nil
	}
	f, err := os.Open(p.SecretFile)
	if err != nil {
		p.bad("secret-file", p.SecretFile, "%s", input.Unreadable(err, fmt.Sprintf(makeSecret, p.SecretFile)))
		return nil
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, largestSecret))
	if err != nil {
		p.bad("secret-file", p.SecretFile, "%s", input.Unreadable(err, fmt.Sprintf(makeSecret, p.SecretFile)))
		return nil
	}
	encoded, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "whsec_")
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(secret) < leastSecret {
		p.bad("secret-file", p.SecretFile, "must have whsec_ and at least %d bytes in base64; "+makeSecret, leastSecret, p.SecretFile)
		return nil
	}
	return secret
}

// ownHeader refuses a header that the sink or the client of HTTP sets.
func (p *publishPlanner) ownHeader(flag, name string) {
	same := textproto.CanonicalMIMEHeaderKey(name)
	own := []string{"Idempotency-Key", "Host", "Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Keep-Alive", "Expect"}
	if slices.Contains(own, same) || strings.HasPrefix(same, "Webhook-") {
		p.bad(flag, name, "is a header that this program sets itself")
	}
}
