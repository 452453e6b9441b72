package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
)

const topic, group = "payments", "bank"

// send produces payments, and returns nil when the broker has them. The key in
// the header is the payment's own, the same each time; the record's key keeps
// the payments of an account in order.
func send(ctx context.Context, c *config, payments ...payment) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.kafka))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, p := range payments {
		body, err := json.Marshal(p)
		if err != nil {
			return err
		}
		record := semelkafka.Keyed(&kgo.Record{Topic: topic, Key: []byte(p.From), Value: body}, p.ID)
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// makeTopics makes what serve needs. In production they are the operator's,
// with more replicas.
func makeTopics(ctx context.Context, c *config) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.kafka))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, name := range []string{topic, "dead-letters." + group, "quarantine." + group} {
		r, err := kadm.NewClient(client).CreateTopic(ctx, 3, 1, nil, name)
		if err = errors.Join(err, r.Err); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
	}
	return nil
}
