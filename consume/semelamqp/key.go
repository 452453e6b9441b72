package semelamqp

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/semel-go/semel/consume"
)

// FromMessageID takes the message-id that the producer set: a good key if the
// producer uses the same one when it sends again. AMQP has no ID of the broker,
// so consume.BrokerID finds no key here. An empty message-id is no key.
func FromMessageID() consume.KeySource {
	return from(MessageID, "semel-message-id:")
}

// FromRoutingKey takes the routing key that the message was first published
// with, for producers that put the identity there. An empty one is no key.
func FromRoutingKey() consume.KeySource {
	return from(RoutingKey, "semel-routing-key:")
}

const maxKeyBytes = 255 // the limit of a call's key

// from takes a header as a key. The prefix separates it from keys of other
// sources; a value that is too long is hashed.
func from(name, prefix string) consume.KeySource {
	return func(m *consume.Message) (string, error) {
		value, _ := m.Header(name)
		if value == "" {
			return "", consume.ErrNoKey
		}
		if len(prefix)+len(value) > maxKeyBytes {
			sum := sha256.Sum256([]byte(value))
			return prefix + "sha256:" + hex.EncodeToString(sum[:]), nil
		}
		return prefix + value, nil
	}
}

// ByRoutingKey is an Options.OrderKey: messages first published with equal
// routing keys wait for each other.
func ByRoutingKey(m *consume.Message) string { return header(m, RoutingKey) }

// ByHeader is an Options.OrderKey: messages with equal values of a header wait
// for each other; a message without it waits for none.
func ByHeader(name string) func(m *consume.Message) string {
	return func(m *consume.Message) string { return header(m, name) }
}

func header(m *consume.Message, name string) string {
	value, _ := m.Header(name)
	return value
}
