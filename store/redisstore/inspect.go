package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// recheckInterval is how old the settings of a server may be when a claim is
// granted. After a new connection, which may lead to another server, they are read
// again at once.
const recheckInterval = 10 * time.Second

// inspection is what the store knows about the settings of one server, or of one
// node of a cluster.
type inspection struct {
	node     node
	dials    atomic.Uint64 // connections that were made
	lastPass atomic.Pointer[lastPass]
	reading  chan struct{} // holds a value while a caller reads the settings
}

// lastPass is the last time that the settings were safe.
type lastPass struct {
	dials uint64
	time  time.Time
}

func newInspection(n node) *inspection {
	in := &inspection{node: n, reading: make(chan struct{}, 1)}
	n.client.AddHook(dialHook{in})
	return in
}

// isFresh reports whether the settings that were read last still count.
func (in *inspection) isFresh() bool {
	p := in.lastPass.Load()
	return p != nil && p.dials == in.dials.Load() && time.Since(p.time) < recheckInterval
}

// dialHook counts connections, and leaves commands as they are.
type dialHook struct{ in *inspection }

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		if err == nil {
			h.in.dials.Add(1)
		}
		return c, err
	}
}

func (h dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// nodeInspections are those of the server or of the nodes that claims have been sent
// to.
type nodeInspections struct {
	single        *inspection // nil: a cluster
	allPassedOnce atomic.Bool // all servers that could be reached have passed once

	mu     sync.Mutex
	byNode map[string]*inspection // by address
	// persistence is the weakest of all servers when the store was opened.
	persistence persistence
}

// checkBeforeClaim refuses claims that the options do not allow or the server may lose.
func (s *Store) checkBeforeClaim(ctx context.Context, p *store.Proposal) (*inspection, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if p.Policy == store.Park && isClaim(p) && !s.opt.AllowPark {
		return nil, errors.New("a claim with policy park: Redis may lose it in a fail-over or a crash, and its effect may then happen twice; use a database, or read the documentation of package redisstore and set Options.AllowPark")
	}
	return s.inspectFor(ctx, &p.Key)
}

// refusedClaim ends a claim that failed. If the server is unsafe, or refuses to write, the key
// may have a record of another owner all the same. It then comes with the error, without its
// outcome, so that a Guard with UnprotectedOnOutage does not run the handler.
func (s *Store) refusedClaim(ctx context.Context, p *store.Proposal, cause error) (store.Found, error) {
	if !errors.Is(cause, ErrUnsafe) && !refusesWrites(cause) {
		return store.Found{}, cause
	}
	f, err := s.look(ctx, s.reads, &p.Key, s.newCall(&s.scripts.get, &p.Key, stateChange{}))
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err == nil && f.Record.Owner != p.Owner:
		return withoutOutcome(f), cause
	case store.Affects(s.explain("get", err)) == store.ExtentCall: // there is something that cannot be read
		return store.Found{}, err
	}
	return store.Found{}, cause
}

// checkGranted refuses a claim that too few acknowledged, or that went over a new
// connection to a server that does not pass.
func (s *Store) checkGranted(ctx context.Context, in *inspection, c *call) error {
	if err := s.inspect(ctx, in); err != nil {
		return err
	}
	if c.ackErr != nil {
		return notAcknowledged(c.ackErr)
	}
	return nil
}

// inspectFor refuses a claim if the server that has its key loses records while it
// runs, or has become less durable since the store was opened. If the server has not
// passed recently, it is asked.
func (s *Store) inspectFor(ctx context.Context, k *store.Key) (*inspection, error) {
	if !s.inspections.allPassedOnce.Load() {
		if err := s.inspectAll(ctx); err != nil {
			return nil, err
		}
	}
	in := s.inspections.single
	if s.cluster != nil {
		record, _ := s.name(k.Digest())
		client, err := s.cluster.MasterForKey(ctx, record)
		if err != nil {
			return nil, err
		}
		in = s.inspections.forNode(client)
	}
	return in, s.inspect(ctx, in)
}

// forNode is the inspection of a node of a cluster.
func (all *nodeInspections) forNode(client *redis.Client) *inspection {
	addr := client.Options().Addr
	all.mu.Lock()
	defer all.mu.Unlock()
	in := all.byNode[addr]
	if in == nil || in.node.client != redis.UniversalClient(client) { // the client of a node that left and came back is new
		in = newInspection(node{addr, client})
		all.byNode[addr] = in
	}
	return in
}

func (s *Store) inspect(ctx context.Context, in *inspection) error {
	if in.isFresh() {
		return nil
	}
	select {
	case in.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	answer := make(chan error, 1)
	go func() { // the client may ignore ctx
		defer func() { <-in.reading }()
		answer <- s.recheck(ctx, in)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recheck reads the settings of a server, unless another caller has done so meanwhile.
func (s *Store) recheck(ctx context.Context, in *inspection) error {
	if in.isFresh() {
		return nil
	}
	now := &lastPass{in.dials.Load(), time.Now()}
	err := in.node.judge(ctx, func(set *settings) []finding {
		return append(set.running(&s.opt), s.inspections.compare(set)...)
	})
	if err == nil {
		in.lastPass.Store(now)
	}
	return err
}

// inspectAll inspects all servers. In a cluster it leaves out those that cannot be
// reached: their first claims inspect them.
func (s *Store) inspectAll(ctx context.Context) error {
	all, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, n := range all {
		in := s.inspections.single
		if client, ok := n.client.(*redis.Client); ok && s.cluster != nil {
			in = s.inspections.forNode(client)
		}
		wait.Go(func() { errs[i] = s.inspect(ctx, in) })
	}
	wait.Wait()
	err = errors.Join(errs...)
	if err != nil && (errors.Is(err, ErrUnsafe) || !slices.Contains(errs, nil)) {
		return err
	}
	s.inspections.allPassedOnce.Store(true)
	return nil
}

// compare returns the setting with which a server keeps less than the weakest did
// when the store was opened.
func (all *nodeInspections) compare(set *settings) []finding {
	all.mu.Lock()
	defer all.mu.Unlock()
	now := set.persistence(all.persistence)
	switch {
	case !all.allPassedOnce.Load():
		if all.persistence == 0 || now < all.persistence {
			all.persistence = now
		}
	case now < all.persistence:
		return []finding{{now.String(), fmt.Sprintf("%v held when the store was opened, and without it a crash loses more; set it back, or open the store again to accept the change", all.persistence)}}
	}
	return nil
}

// persistence is how much a server keeps when it crashes.
type persistence int

const (
	noLog persistence = iota + 1
	logWritten
	logEachSecond
	logAlways
)

func (p persistence) String() string {
	return [...]string{"", "appendonly no", "appendfsync no", "appendfsync everysec", "appendfsync always"}[p]
}

// persistence is the server's. If CONFIG GET is not allowed, a server with a log has
// the earlier one.
func (set *settings) persistence(earlier persistence) persistence {
	switch {
	case set.info["aof_enabled"] != "1":
		return noLog
	case set.fsync == "always":
		return logAlways
	case set.fsync == "everysec":
		return logEachSecond
	case set.fsync == "":
		return max(earlier, logWritten)
	}
	return logWritten
}
