package consume

import (
	"errors"
	"fmt"
	"mime"
	"strings"
)

// CloudEvent joins the source and the id of a CloudEvent to a key. Both stay the same when
// the producer sends the event again. CloudEvent reads both forms: the attributes in
// headers (ce_id in Kafka, ce-id in NATS and HTTP, cloudEvents:id and cloudEvents_id in
// AMQP) and the JSON envelope, with the content type application/cloudevents+json. A
// message that is no CloudEvent has no key. A CloudEvent without a source or an id is an
// error, so the message is dead-lettered.
func CloudEvent() KeySource {
	return func(m *Message) (string, error) {
		if kind, ok := m.Header("content-type"); ok {
			switch media, _, _ := mime.ParseMediaType(kind); media {
			case "application/cloudevents+json":
				return structured(m.Body)
			case "application/cloudevents-batch+json":
				return "", errors.New("cloudevent: is a batch; send one event a message")
			}
		}
		id, hasID := attribute(m, "id")
		source, hasSource := attribute(m, "source")
		if _, version := attribute(m, "specversion"); !hasID && !hasSource && !version {
			return "", ErrNoKey
		}
		return eventKey(source, id)
	}
}

// attribute finds a CloudEvents attribute among the headers.
func attribute(m *Message, name string) (string, bool) {
	for _, prefix := range [...]string{"ce_", "ce-", "cloudEvents:", "cloudEvents_"} {
		if v, ok := m.Header(prefix + name); ok {
			return v, true
		}
	}
	return "", false
}

func structured(body []byte) (string, error) {
	source, sourceExact, err := eventText(body, "source")
	if err != nil {
		return "", err
	}
	id, idExact, err := eventText(body, "id")
	if err != nil {
		return "", err
	}
	if !sourceExact || !idExact {
		return digest(reserved+"ce:raw:sha256:", []byte(source), []byte(id)), nil
	}
	return eventKey(source, id)
}

// eventText returns an attribute of an envelope; empty if it is absent. See
// text.
func eventText(body []byte, name string) (s string, exact bool, err error) {
	raw, err := member(body, name)
	if err == nil && raw != nil {
		s, exact, err = text(raw)
	} else {
		exact = true
	}
	if err != nil {
		return "", false, fmt.Errorf("cloudevent: the envelope: %w", err)
	}
	return s, exact, nil
}

func eventKey(source, id string) (string, error) {
	if source == "" || id == "" {
		return "", fmt.Errorf("cloudevent: has a source of %d bytes and an id of %d; both must be there", len(source), len(id))
	}
	if strings.Contains(source, " ") { // a URI has no space; with one, two events could have one key
		return digest(reserved+"ce:sha256:", []byte(source), []byte(id)), nil
	}
	return short(reserved+"ce:", source+" "+id), nil
}
