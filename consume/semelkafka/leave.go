package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// closeTimeout is how long Close waits for the brokers, beside HandOver: to
// leave in order, and if that takes longer, once more to be taken out.
const closeTimeout = 5 * time.Second

// Close commits what is done and leaves the group, so that other members take
// over at once. Call it after Serve has returned; before, it ends Serve. A
// second call does nothing. A static member (group.instance.id) keeps its place.
//
// It takes at most HandOver and some 10 s. That long if the group waits for a
// member that is dead: nothing can be committed then, so that what was done
// since the last commit is delivered again, and is a duplicate. An error: the
// brokers did not answer in time, and find out by the session's time-out;
// nothing is lost.
func (s *Source) Close() error {
	s.mu.Lock()
	cl, first := s.client, !s.closing
	s.closing = true
	s.breakOff(errors.New("Close was called"))
	s.mu.Unlock()
	if !first || cl == nil {
		return nil
	}
	close(s.stop)
	s.loop.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), s.opt.HandOver+closeTimeout)
	defer cancel()
	err := cl.LeaveGroupContext(ctx)
	if err != nil && ctx.Err() != nil {
		ctx, cancel = context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err = s.takeOut(ctx, cl)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		cl.Close()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	s.quit()
	s.mu.Lock()
	left := make([]*partition, 0, len(s.parts))
	for _, p := range s.parts {
		left = append(left, p)
	}
	s.mu.Unlock()
	s.forget(left)
	if err != nil {
		return fmt.Errorf("semelkafka: leaving group %q: %w", s.group, err)
	}
	return nil
}

// newMember makes the client that joins the group, and what ends all that it
// waits for, as nothing of its own does.
func (s *Source) newMember() (*kgo.Client, context.CancelFunc, error) {
	aside, err := s.aside()
	if err != nil {
		return nil, nil, err
	}
	defer aside.Close()
	parent, ok := aside.OptValue(kgo.WithContext).(context.Context) // the user's
	if !ok {
		parent = context.Background()
	}
	ctx, quit := context.WithCancel(parent)
	cl, err := kgo.NewClient(append(s.options(), kgo.WithContext(ctx))...)
	if err != nil {
		quit()
		return nil, nil, err
	}
	return cl, quit, nil
}

// aside makes a client that is no member of the group. It connects when it is
// asked something.
func (s *Source) aside(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(slices.Concat(s.opt.Client, more)...)
}

// takeOut ends a membership for which the client cannot, as long as it waits
// for the answer to a join: until the last of the others has joined, or the
// session of one that is dead has ended. Such a member, if it were just gone,
// would be given partitions, which would wait for the end of its session in
// turn.
//
// The client must not see that it is taken out, for it would join again.
func (s *Source) takeOut(ctx context.Context, cl *kgo.Client) error {
	s.quit()
	id, _ := cl.GroupMetadata()
	if id == "" {
		return nil // the group does not know it yet
	}
	if instance := cl.OptValue(kgo.InstanceID); instance != "" {
		return nil // a static member keeps its place, until it comes back
	}
	aside, err := s.aside()
	if err != nil {
		return err
	}
	defer aside.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	member := kmsg.NewLeaveGroupRequestMember()
	req.Group, req.MemberID, member.MemberID = s.group, id, id
	member.Reason = kmsg.StringPtr("is closed while the group waits for others")
	req.Members = append(req.Members, member)
	resp, err := req.RequestWith(ctx, aside)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	for i := range resp.Members {
		err = errors.Join(err, kerr.ErrorForCode(resp.Members[i].ErrorCode))
	}
	if errors.Is(err, kerr.UnknownMemberID) {
		return nil // its session has ended
	}
	return err
}
