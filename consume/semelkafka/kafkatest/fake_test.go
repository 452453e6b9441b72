package kafkatest

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeKafka is a kfake that removes members that have died. A kfake alone keeps a member for
// ever if its connection ends while it waits for the answer to its first join, and then
// nobody reads the partitions of that member.
type fakeKafka struct {
	*kfake.Cluster
	client *kgo.Client
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	heard map[string]time.Time // by the member's id: its last request
}

// tooSilent is how long a member of a stable group may say nothing. During a rebalance a
// member is silent while it waits for the others, and kfake removes the members that do not
// join; to remove one then would begin the wait of the others anew.
const tooSilent = 15 * time.Second

// newFake starts one. Clients must not have to authenticate.
func newFake(opts ...kfake.Opt) (*fakeKafka, error) {
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}, opts...)...)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		c.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &fakeKafka{Cluster: c, client: client, stop: stop, heard: map[string]time.Time{}}
	for _, k := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat} {
		c.ControlKey(k.Int16(), f.hear)
	}
	f.ended.Go(func() { f.watch(ctx) })
	return f, nil
}

// Close ends the broker.
func (f *fakeKafka) Close() {
	f.stop()
	f.ended.Wait()
	f.client.Close()
	f.Cluster.Close()
}

// hear notes that a member lives, and leaves the answer to the broker.
func (f *fakeKafka) hear(r kmsg.Request) (kmsg.Response, error, bool) {
	f.KeepControl()
	member := ""
	switch r := r.(type) {
	case *kmsg.JoinGroupRequest:
		member = r.MemberID
	case *kmsg.SyncGroupRequest:
		member = r.MemberID
	case *kmsg.HeartbeatRequest:
		member = r.MemberID
	}
	f.noteHeard(member)
	return nil, nil, false
}

func (f *fakeKafka) noteHeard(member string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard[member] = time.Now()
}

// watch removes members that are silent for too long.
func (f *fakeKafka) watch(ctx context.Context) {
	admin := kadm.NewClient(f.client)
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			groups, err := admin.DescribeGroups(ctx)
			if err != nil {
				continue // the next tick is soon
			}
			for _, g := range groups.Sorted() {
				for _, m := range g.Members {
					if g.State != "Stable" {
						f.noteHeard(m.MemberID)
					} else if f.silent(m.MemberID) > tooSilent {
						f.remove(ctx, g.Group, m.MemberID)
					}
				}
			}
		}
	}
}

// silent is how long a member has said nothing, since it is known.
func (f *fakeKafka) silent(member string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard[member].IsZero() {
		f.heard[member] = time.Now() // it was restored from the disk
	}
	return time.Since(f.heard[member])
}

func (f *fakeKafka) remove(ctx context.Context, group, member string) {
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = member
	leave.Members = append(leave.Members, m)
	_, _ = leave.RequestWith(ctx, f.client) // it is tried again at the next tick
}
