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

// closeTimeout is how long Close waits for the brokers beyond HandOver: once to
// leave in order, and if that fails, once more to remove the member.
const closeTimeout = 5 * time.Second

// Close commits finished messages and leaves the group, so that other members
// take over at once. Call it after Serve has returned; an earlier call ends
// Serve. A second call does nothing. A static member (group.instance.id) keeps
// its place.
//
// It takes at most HandOver and about 20 s: a commit that runs may take 10 s. It takes long
// while the group waits for a dead member: no commit is possible then, so that messages done
// since the last commit come again, as duplicates. It returns an error if the
// brokers did not answer in time; they notice the end by the session's
// time-out, and no message is lost.
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
		err = s.removeMember(ctx, cl)
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

// newMember makes the client that joins the group, and a function that ends its
// pending requests.
func (s *Source) newMember() (*kgo.Client, context.CancelFunc, error) {
	plain, err := s.plainClient()
	if err != nil {
		return nil, nil, err
	}
	parent, ok := plain.OptValue(kgo.WithContext).(context.Context) // the user's
	plain.Close()                                                   // a hook may accept one open client only
	if !ok {
		parent = context.Background()
	}
	ctx, quit := context.WithCancel(parent)
	cl, err := newClient(append(s.options(), kgo.WithContext(ctx))...)
	if err != nil {
		quit()
		return nil, nil, err
	}
	return cl, quit, nil
}

// plainClient makes a client outside the group. It connects at its first
// request.
func (s *Source) plainClient(more ...kgo.Opt) (*kgo.Client, error) {
	return newClient(append(s.outside(), more...)...)
}

// removeMember ends a membership that the client itself cannot end while it
// waits for the answer to a join, until all other members have joined or a dead
// member's session has ended. A member that just disappeared would be given
// partitions, which would wait for the end of its session in turn.
//
// The client must not notice the removal, because it would join again.
func (s *Source) removeMember(ctx context.Context, cl *kgo.Client) error {
	s.quit()
	id, _ := cl.GroupMetadata()
	if id == "" {
		return nil // the group does not know it yet
	}
	if instance := cl.OptValue(kgo.InstanceID); instance != "" {
		return nil // a static member keeps its place, until it comes back
	}
	plain, err := s.plainClient()
	if err != nil {
		return err
	}
	defer plain.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	member := kmsg.NewLeaveGroupRequestMember()
	req.Group, req.MemberID, member.MemberID = s.group, id, id
	member.Reason = kmsg.StringPtr("is closed while the group waits for others")
	req.Members = append(req.Members, member)
	resp, err := req.RequestWith(ctx, plain)
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
