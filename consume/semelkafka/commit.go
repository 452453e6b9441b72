package semelkafka

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitTimeout limits one commit.
const commitTimeout = 10 * time.Second

// committer commits moved watermarks until stop is closed.
func (s *Source) committer(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.moved:
		}
		select {
		case <-stop: // the rest is committed when the group is left
			return
		case <-time.After(s.opt.CommitEvery):
		}
		s.commit(context.Background(), nil)
	}
}

// commit commits the moved watermarks of some partitions; nil: of all. The next
// commit repeats a failed one.
func (s *Source) commit(ctx context.Context, left []*partition) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	s.commits.Lock() // an older watermark must not be committed after a newer one
	defer s.commits.Unlock()

	s.mu.Lock()
	cl := s.client
	if left == nil {
		for _, p := range s.parts {
			left = append(left, p)
		}
	}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	var committed []*partition
	written := map[partitionID]commitMetadata{}
	for _, p := range left {
		if !p.dirty || p.gone {
			continue
		}
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.partition] = kgo.EpochOffset{Epoch: p.mark.next.epoch, Offset: p.mark.next.offset}
		p.dirty = false
		written[p.partitionID] = commitMetadata{after: p.mark.after, last: p.mark.last, partitions: s.startPartitions[p.topic]}
		committed = append(committed, p)
	}
	s.mu.Unlock()
	if len(committed) == 0 || cl == nil {
		return
	}

	var failed error
	refused := map[partitionID]bool{}
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			t := &req.Topics[i]
			for j := range t.Partitions {
				c := &t.Partitions[j]
				n, ok := written[partitionID{t.Topic, c.Partition}]
				if !ok {
					n.after = c.Offset
				}
				c.Metadata = metadata(t.TopicID, c.Offset, n)
			}
		}
		return nil
	})
	cl.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			failed = err
			return
		}
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				r := &resp.Topics[i].Partitions[j]
				if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
					refused[partitionID{resp.Topics[i].Topic, r.Partition}] = true
					s.commitRefused(partitionID{resp.Topics[i].Topic, r.Partition}, err)
				}
			}
		}
	})
	if failed != nil {
		s.warn(fmt.Errorf("semelkafka: group %q: commit: %w", s.group, failed))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range committed {
		if failed != nil || refused[p.partitionID] {
			p.dirty = true
			s.nudge()
		}
	}
}

// commitRefused reports why. Errors of a rebalance are ignored: either the
// partition stays here, and the next commit repeats this one, or another member
// has it.
func (s *Source) commitRefused(at partitionID, err error) {
	switch {
	case errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.UnknownMemberID),
		errors.Is(err, kerr.FencedInstanceID), errors.Is(err, kerr.StaleMemberEpoch):
	default:
		s.failed(at, fmt.Errorf("commit: %w", err))
	}
}

// nudge wakes the committer.
func (s *Source) nudge() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// commitMetadata is the metadata of a commit.
type commitMetadata struct {
	topicID string      // empty: unknown
	after   int64       // the offset after the last message below the commit; markers of transactions follow it
	last    LastMessage // before after
	// partitions is how many partitions the topic had when the group began at its end; zero:
	// unknown.
	partitions int32
}

// The parts of a commit's metadata, which semicolons separate. "last" has the
// leader epoch of the last message and, after "@", its timestamp in milliseconds.
const (
	topicIDPart    = "semel-topic-id="
	afterPart      = "after="
	lastPart       = "last="
	partitionsPart = "partitions="
)

// metadata is the metadata of a commit in the topic with an id.
func metadata(id [16]byte, committed int64, n commitMetadata) *string {
	var parts []string
	if id != [16]byte{} {
		parts = append(parts, topicIDPart+topicIDText(id))
	}
	if n.after < committed {
		parts = append(parts, afterPart+strconv.FormatInt(n.after, 10))
	}
	if n.last.isKnown() {
		parts = append(parts, fmt.Sprintf("%s%d@%d", lastPart, n.last.LeaderEpoch, n.last.Published.UnixMilli()))
	}
	if n.partitions > 0 {
		parts = append(parts, partitionsPart+strconv.FormatInt(int64(n.partitions), 10))
	}
	text := strings.Join(parts, ";")
	return &text
}

// readMetadata reads what metadata has written, or an operator's tool.
func readMetadata(text *string, committed int64) commitMetadata {
	n := commitMetadata{after: committed}
	if text == nil {
		return n
	}
	for part := range strings.SplitSeq(*text, ";") {
		if id, ok := strings.CutPrefix(part, topicIDPart); ok {
			n.topicID = id
		}
		if digits, ok := strings.CutPrefix(part, afterPart); ok {
			if after, err := strconv.ParseInt(digits, 10, 64); err == nil && after >= 0 {
				n.after = after
			}
		}
		if last, ok := strings.CutPrefix(part, lastPart); ok {
			n.last = readLast(last)
		}
		if digits, ok := strings.CutPrefix(part, partitionsPart); ok {
			if partitions, err := strconv.ParseInt(digits, 10, 32); err == nil && partitions > 0 {
				n.partitions = int32(partitions)
			}
		}
	}
	return n
}

func readLast(text string) LastMessage {
	epoch, ms, _ := strings.Cut(text, "@")
	e, err := strconv.ParseInt(epoch, 10, 32)
	if err != nil {
		return LastMessage{}
	}
	published, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || published <= 0 {
		return LastMessage{}
	}
	return LastMessage{int32(e), time.UnixMilli(published)}
}

// topicIDText is a topic's id as Kafka's own tools show it.
func topicIDText(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// firstBegin returns where a partition without a committed offset begins: firstOffset, or
// endOffset with Start Latest, unless the partition was added to its topic after the group
// began to read that topic. Other partitions of the topic have a committed offset then, and
// their commits tell how many partitions there were. Commits of an earlier version and of other
// programs do not tell; if none does, each partition without a commit counts as added.
func (s *Source) firstBegin(ctx context.Context, at partitionID) (int64, error) {
	if s.opt.Start != Latest {
		return firstOffset, nil
	}
	s.mu.Lock()
	cl := s.client
	n, ok := s.startPartitions[at.topic]
	s.mu.Unlock()
	if !ok {
		var err error
		if n, err = partitionsAtStart(ctx, cl, s.group, at.topic); err != nil {
			return 0, err
		}
		s.mu.Lock()
		s.startPartitions[at.topic] = n
		s.mu.Unlock()
	}
	if at.partition >= n {
		return firstOffset, nil
	}
	return endOffset, nil
}

// partitionsAtStart returns how many partitions a topic had when a group began to read it; zero
// if the group's commits do not tell. If it has no commit of the topic, it begins now.
func partitionsAtStart(ctx context.Context, cl *kgo.Client, group, topic string) (int32, error) {
	found, err := findTopics(ctx, cl, []string{topic})
	if err != nil {
		return 0, err
	}
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID = topic, found[topic].id
	for n := range found[topic].partitions {
		t.Partitions = append(t.Partitions, n)
	}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = group, []kmsg.OffsetFetchRequestGroupTopic{t}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups = []kmsg.OffsetFetchRequestGroup{g}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	if len(resp.Groups) != 1 {
		return 0, errors.New("the brokers do not say what the group has committed")
	}
	if err := kerr.ErrorForCode(resp.Groups[0].ErrorCode); err != nil {
		return 0, err
	}
	least, committed, known := found[topic].partitions, false, false
	for i := range resp.Groups[0].Topics {
		for j := range resp.Groups[0].Topics[i].Partitions {
			p := &resp.Groups[0].Topics[i].Partitions[j]
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return 0, err
			}
			committed = committed || p.Offset >= 0
			if n := readMetadata(p.Metadata, p.Offset).partitions; p.Offset >= 0 && n > 0 {
				least, known = min(least, n), true
			}
		}
	}
	if committed && !known {
		return 0, nil
	}
	return least, nil
}
