package semelamqp

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/semel-go/semel/consume"
)

// FromMessageID takes the message-id that the producer set: a good key if the
// producer sends again with the same one. AMQP has no id of the broker's, so
// consume.BrokerID finds none here. Empty: no key.
func FromMessageID() consume.KeySource {
	return from(MessageID, "message-id:")
}

// FromRoutingKey takes the routing key that the message was first published
// with, for producers that put the identity there. Empty: no key.
func FromRoutingKey() consume.KeySource {
	return from(RoutingKey, "routing-key:")
}

const longestKey = 255 // bytes, of semel.NewCall

// from takes a header as a key. The prefix keeps it apart from keys of another
// kind; a longer one is hashed.
func from(name, prefix string) consume.KeySource {
	return func(m *consume.Message) (string, error) {
		value, _ := m.Header(name)
		if value == "" {
			return "", consume.ErrNoKey
		}
		if len(prefix)+len(value) > longestKey {
			sum := sha256.Sum256([]byte(value))
			return prefix + "sha256:" + hex.EncodeToString(sum[:]), nil
		}
		return prefix + value, nil
	}
}

// ByRoutingKey is an Options.OrderKey: messages with the routing key that they
// were first published with wait for each other.
func ByRoutingKey(m *consume.Message) string { return header(m, RoutingKey) }

// ByHeader is an Options.OrderKey: messages with the same value of a header
// wait for each other, and those without it for none.
func ByHeader(name string) func(m *consume.Message) string {
	return func(m *consume.Message) string { return header(m, name) }
}

func header(m *consume.Message, name string) string {
	value, _ := m.Header(name)
	return value
}
