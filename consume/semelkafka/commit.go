package semelkafka

import (
	"context"
	"errors"
	"fmt"
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
	for _, p := range left {
		if !p.dirty || p.gone {
			continue
		}
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.partition] = kgo.EpochOffset{Epoch: p.mark.next.epoch, Offset: p.mark.next.offset}
		p.dirty = false
		committed = append(committed, p)
	}
	s.mu.Unlock()
	if len(committed) == 0 || cl == nil {
		return
	}

	var failed error
	refused := map[place]bool{}
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			t := &req.Topics[i]
			for j := range t.Partitions {
				t.Partitions[j].Metadata = metadata(t.TopicID)
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
					refused[place{resp.Topics[i].Topic, r.Partition}] = true
					s.commitRefused(place{resp.Topics[i].Topic, r.Partition}, err)
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
		if failed != nil || refused[p.place] {
			p.dirty = true
			s.nudge()
		}
	}
}

// commitRefused reports why. Errors of a rebalance are ignored: either the
// partition stays here, and the next commit repeats this one, or another member
// has it.
func (s *Source) commitRefused(at place, err error) {
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
