package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// startTimeout is how long Info waits for the cluster.
const startTimeout = 15 * time.Second

// Info implements driver.Source. It asks the cluster, without joining the
// group, whether the topics and the topics of copies exist, how long they keep
// messages, and how large messages may be.
func (s *Source) Info(ctx context.Context) (driver.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	watch := &dialWatch{s}
	cl, err := s.plainClient(kgo.WithHooks(watch))
	if err != nil {
		return driver.Info{}, fmt.Errorf("semelkafka: Client: %w", err)
	}
	defer cl.Close()
	if d, ok := cl.OptValue(kgo.RebalanceTimeout).(time.Duration); ok && s.opt.HandOver >= d {
		return driver.Info{}, fmt.Errorf("semelkafka: HandOver: is %v; it must be shorter than the rebalance time-out, %v, after which the group drops the member", s.opt.HandOver, d)
	}
	letters := []string{s.opt.DeadLetters, s.opt.Quarantine}
	all := slices.Concat(s.topics, letters)
	ids, configs, err := describe(ctx, cl, all)
	if err != nil {
		return driver.Info{}, s.explain(err)
	}
	var errs []error
	info := driver.Info{HoldsOnly: true, Horizon: s.opt.Horizon}
	largest := int32(0)
	for _, t := range s.topics {
		if s.opt.Horizon == 0 {
			info.Horizon = max(info.Horizon, configs[t].keeps)
		}
		largest = max(largest, configs[t].messageBytes)
	}
	for _, t := range letters {
		if err := configs[t].keepsCopies(t); err != nil {
			errs = append(errs, err)
		}
		if n := configs[t].messageBytes; n < largest {
			errs = append(errs, fmt.Errorf("topic %q: takes messages of up to %d bytes, but consumed messages may have %d; raise its max.message.bytes", t, n, largest))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return driver.Info{}, fmt.Errorf("semelkafka: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids, s.limits = ids, map[string]int32{}
	for _, t := range letters {
		s.limits[t] = configs[t].messageBytes
	}
	return info, nil
}

// explain adds the reason why no broker could be reached, if there is one. A broker
// closes a connection whose TLS or credentials it refuses.
func (s *Source) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialed != nil {
		return fmt.Errorf("semelkafka: no broker can be reached; see whether one runs there, and check TLS, the user and the password: %w", errors.Join(s.dialed, err))
	}
	return fmt.Errorf("semelkafka: %w", err)
}

// Brokers learn of a new topic one after the other: how long describe looks for
// a topic, and the pause between its tries.
const (
	lookFor   = 3 * time.Second
	lookAgain = 100 * time.Millisecond
)

// describe finds topics and their configurations; a missing topic is an error.
func describe(ctx context.Context, cl *kgo.Client, topics []string) (ids map[string][16]byte, configs map[string]topicConfig, err error) {
	for end := time.Now().Add(lookFor); ; {
		var found map[string]foundTopic
		if found, err = findTopics(ctx, cl, topics); err == nil {
			configs, err = topicConfigs(ctx, cl, topics)
		}
		soon := errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.LeaderNotAvailable)
		if !soon || time.Now().After(end) {
			ids = make(map[string][16]byte, len(found))
			for name, t := range found {
				ids[name] = t.id
			}
			return ids, configs, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(lookAgain):
		}
	}
}

// foundTopic is a topic that exists.
type foundTopic struct {
	id         [16]byte
	partitions int32
}

// findTopics finds topics; a missing one is an error.
func findTopics(ctx context.Context, cl *kgo.Client, topics []string) (map[string]foundTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	found := map[string]foundTopic{}
	var errs []error
	for i := range resp.Topics {
		t := &resp.Topics[i]
		name := ""
		if t.Topic != nil {
			name = *t.Topic
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			errs = append(errs, missing(name, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("topic %q: %w", name, err))
		}
		found[name] = foundTopic{t.TopicID, int32(len(t.Partitions))} //nolint:gosec // far fewer partitions
	}
	return found, errors.Join(errs...)
}

func missing(topic string, err error) error {
	return fmt.Errorf("topic %q: does not exist; create it with: kafka-topics.sh --create --topic %s: %w", topic, topic, err)
}

// topicConfig is the part of a topic's configuration that matters here.
type topicConfig struct {
	keeps        time.Duration // driver.Forever: no limit
	messageBytes int32
	compacted    bool
}

// keepsCopies returns an error if a topic does not keep each copy that it acknowledges.
func (c topicConfig) keepsCopies(topic string) error {
	if !c.compacted {
		return nil
	}
	return fmt.Errorf("topic %q: is compacted, so that only the last copy of each key would be kept; set its cleanup.policy to delete, with: "+
		"kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config cleanup.policy=delete", topic, topic)
}

// checkCopies asks whether a topic of copies keeps them.
func checkCopies(ctx context.Context, cl *kgo.Client, topic string) error {
	configs, err := topicConfigs(ctx, cl, []string{topic})
	if err != nil {
		return err
	}
	return configs[topic].keepsCopies(topic)
}

// topicConfigs reads the configurations of topics.
func topicConfigs(ctx context.Context, cl *kgo.Client, topics []string) (map[string]topicConfig, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, t := range topics {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, t
		r.ConfigNames = []string{"retention.ms", "cleanup.policy", "max.message.bytes"}
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	all := map[string]topicConfig{}
	var errs []error
	for i := range resp.Resources {
		r := &resp.Resources[i]
		switch err := kerr.ErrorForCode(r.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			errs = append(errs, missing(r.ResourceName, err))
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("topic %q: its configuration cannot be read; allow the client to describe it: %w", r.ResourceName, err))
			continue
		}
		c, err := readConfig(r.Configs)
		if err != nil {
			errs = append(errs, fmt.Errorf("topic %q: %w", r.ResourceName, err))
		}
		all[r.ResourceName] = c
	}
	return all, errors.Join(errs...)
}

func readConfig(configs []kmsg.DescribeConfigsResponseResourceConfig) (c topicConfig, _ error) {
	values := map[string]string{}
	for i := range configs {
		if v := configs[i].Value; v != nil {
			values[configs[i].Name] = *v
		}
	}
	policy := values["cleanup.policy"]
	c.compacted = strings.Contains(policy, "compact")
	ms, err := strconv.ParseInt(values["retention.ms"], 10, 64)
	if err != nil {
		return c, fmt.Errorf("retention.ms: %w", err)
	}
	bytes, err := strconv.ParseInt(values["max.message.bytes"], 10, 32)
	if err != nil {
		return c, fmt.Errorf("max.message.bytes: %w", err)
	}
	c.messageBytes = int32(bytes)
	c.keeps = time.Duration(ms) * time.Millisecond
	if ms < 0 || ms > int64(driver.Forever/time.Millisecond) || policy == "compact" {
		c.keeps = driver.Forever
	}
	return c, nil
}
