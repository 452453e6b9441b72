package deliver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelsqs"
)

// KeyChoices explains the values of --key.
const KeyChoices = `header:NAME        a header that the producer sets
cloudevent         source and id of a CloudEvent
json:FIELD         a member of a JSON body, such as json:order.id
hash               a hash of the whole body and of the record key; hash:FIELD of a
                   member of a JSON body
message-id         the message-id of AMQP
deduplication-id   the MessageDeduplicationId of a FIFO queue of SQS
broker-id          the broker's own ID: it recognises redeliveries only, because a
                   producer that sends again gets a new ID (not with amqp://)
unprotected        last: a message without a key is sent under a new key each time
reject             last: a message without a key stops the program, and stays
                   with the broker`

// ParseKey reads one value of --key.
func ParseKey(text string) (consume.KeySource, error) {
	kind, name, hasName := strings.Cut(text, ":")
	if hasName && name == "" {
		return nil, errors.New("has no name after the colon; write one such as header:idempotency-key or json:order.id")
	}
	switch {
	case kind == "header" && hasName:
		return consume.FromHeader(name), nil
	case kind == "json" && hasName:
		return consume.JSONField(name), nil
	case kind == "hash" && hasName:
		return consume.Hash(name), nil
	case hasName:
	case kind == "hash":
		return consume.Hash(), nil
	case kind == "cloudevent":
		return consume.CloudEvent(), nil
	case kind == "message-id":
		return semelamqp.FromMessageID(), nil
	case kind == "deduplication-id":
		return consume.FromHeader(semelsqs.DeduplicationIDHeader), nil
	case kind == "broker-id":
		return consume.BrokerID(), nil
	case kind == "unprotected":
		return consume.Unprotected(), nil
	case kind == "reject":
		return consume.Reject(), nil
	}
	return nil, errors.New("choose header:NAME, cloudevent, json:FIELD, hash, hash:FIELD, message-id, deduplication-id, broker-id, unprotected or reject")
}

// Calls says which call a message belongs to.
type Calls struct {
	Operation string
	Sources   []consume.KeySource
	// TenantHeader is the header of messages that names the tenant. Empty: all
	// messages belong to one.
	TenantHeader string
	// AnyBody lets a message with a known key pass as a duplicate although its body, or
	// another part of consume.Payload, differs.
	AnyBody bool
}

// Call is a consume.CallFunc.
func (c *Calls) Call(m *consume.Message) (semel.Call, error) {
	call := semel.Call{Operation: c.Operation, Tenant: semel.Shared, Payload: semel.NoPayload()}
	if c.TenantHeader != "" {
		tenant, _ := m.Header(c.TenantHeader)
		tenant = strings.Trim(tenant, " \t") // HTTP does, so that this is the tenant that the service gets
		if tenant == "" {
			return call, fmt.Errorf("the header %q, which --scope names, is missing or empty", c.TenantHeader)
		}
		call.Tenant = tenant
	}
	var err error
	if call.Key, err = consume.First(c.Sources...)(m); err != nil {
		call.Key = ""
		return call, err
	}
	if !c.AnyBody {
		call.Payload = consume.Payload(m)
	}
	return call, nil
}
