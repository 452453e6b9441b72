package consume

import (
	"errors"
	"fmt"
	"mime"
	"strings"
)

// CloudEvent takes source and id of a CloudEvent, which its producer keeps
// when it sends again. It reads both forms: the attributes in headers (ce_id
// of Kafka, ce-id of NATS and HTTP, cloudEvents:id and cloudEvents_id of AMQP),
// and the JSON envelope. A message that is no CloudEvent has no key; one that
// lacks either attribute is malformed, which is an error.
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
	source, isText, err := eventText(body, "source")
	if err != nil {
		return "", err
	}
	id, alsoText, err := eventText(body, "id")
	if err != nil {
		return "", err
	}
	if !isText || !alsoText {
		return digest("ce:raw:sha256:", []byte(source), []byte(id)), nil
	}
	return eventKey(source, id)
}

// eventText is an attribute of an envelope; see text. Empty: it is not there.
func eventText(body []byte, name string) (s string, whole bool, err error) {
	raw, err := member(body, name)
	if err == nil && raw != nil {
		s, whole, err = text(raw)
	} else {
		whole = true
	}
	if err != nil {
		return "", false, fmt.Errorf("cloudevent: the envelope: %w", err)
	}
	return s, whole, nil
}

func eventKey(source, id string) (string, error) {
	if source == "" || id == "" {
		return "", fmt.Errorf("cloudevent: has a source of %d bytes and an id of %d; both must be there", len(source), len(id))
	}
	if strings.Contains(source, " ") { // a URI has none; with one, two events could meet
		return digest("ce:sha256:", []byte(source), []byte(id)), nil
	}
	return short("ce:", source+" "+id), nil
}
