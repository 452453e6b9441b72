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
		written[p.partitionID] = commitMetadata{after: p.mark.after, last: p.mark.last}
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
				c.Metadata = metadata(t.TopicID, c.Offset, n.after, n.last)
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
}

// The parts of a commit's metadata, which semicolons separate. "last" has the
// leader epoch of the last message and, after "@", its timestamp in milliseconds.
const (
	topicIDPart = "semel-topic-id="
	afterPart   = "after="
	lastPart    = "last="
)

func metadata(id [16]byte, committed, after int64, last LastMessage) *string {
	var parts []string
	if id != [16]byte{} {
		parts = append(parts, topicIDPart+topicIDText(id))
	}
	if after < committed {
		parts = append(parts, afterPart+strconv.FormatInt(after, 10))
	}
	if last.isKnown() {
		parts = append(parts, fmt.Sprintf("%s%d@%d", lastPart, last.LeaderEpoch, last.Published.UnixMilli()))
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
