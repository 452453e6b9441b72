package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// redirects is how often calls are sent again that went to the wrong node.
const redirects = 5

// sendAcked sends changes and waits until replicas acknowledge them. WAIT must
// use the connection of the changes, so the calls are grouped by node.
func (s *Store) sendAcked(ctx context.Context, calls []*call) {
	for left, try := calls, 0; len(left) > 0; try++ {
		s.eachNode(ctx, left, func(node sender, calls []*call) {
			s.sendWithFallback(calls, func(commands []*command) { s.exchangeAcked(ctx, node, commands, false) })
		})
		s.followAsk(ctx, left)
		if left = misdirected(left); len(left) > 0 && (try == redirects || !s.relocate(ctx, try)) {
			break
		}
	}
}

// followAsk sends the calls again whose record has moved, while its slot still moves: to the
// node that the server has named. A node that has no slot yet is not known to the client.
func (s *Store) followAsk(ctx context.Context, calls []*call) {
	byAddr := map[string][]*call{}
	for _, c := range calls {
		if addr, ok := redis.IsAskError(c.err); ok {
			byAddr[addr] = append(byAddr[addr], c)
		}
	}
	if len(byAddr) == 0 || s.cluster == nil {
		return
	}
	_ = s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		if asked := byAddr[node.Options().Addr]; len(asked) > 0 {
			s.sendWithFallback(asked, func(commands []*command) { s.exchangeAcked(ctx, node, commands, true) })
		}
		return nil
	})
}

// misdirected returns the calls whose slot is on, or moves to, another node.
func misdirected(calls []*call) (again []*call) {
	for _, c := range calls {
		if moved(c.err) {
			again = append(again, c)
		}
	}
	return again
}

// relocate reloads the client's map of slots, and waits a little. It reports
// whether the calls may be sent again.
func (s *Store) relocate(ctx context.Context, try int) bool {
	if s.cluster == nil {
		return false
	}
	s.cluster.ReloadState(ctx)
	t := time.NewTimer(20 * time.Millisecond << try)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// eachNode calls fn concurrently with the calls of each node.
func (s *Store) eachNode(ctx context.Context, calls []*call, fn func(node sender, calls []*call)) {
	if s.cluster == nil {
		fn(s.client, calls)
		return
	}
	byNode := map[*redis.Client][]*call{}
	for _, c := range calls {
		node, err := s.cluster.MasterForKey(ctx, c.record)
		if err != nil {
			c.err = err
			continue
		}
		byNode[node] = append(byNode[node], c)
	}
	var all sync.WaitGroup
	for node, calls := range byNode {
		all.Go(func() { fn(node, calls) })
	}
	all.Wait()
}

// exchangeAcked sends commands as sendCommands does, followed by one WAIT for all of
// them on the same connection. If asking, the node gets the slots of the records, which
// another node still has.
func (s *Store) exchangeAcked(ctx context.Context, node sender, commands []*command, asking bool) {
	pipe := node.Pipeline()
	for _, p := range commands {
		if asking {
			_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
		}
		_ = pipe.Process(ctx, p.build(ctx))
	}
	ackResult := s.pipeWait(ctx, pipe)
	_, _ = pipe.Exec(ctx)
	ackErr := ackResult()
	for _, p := range commands {
		p.keepAnswer()
		p.read()
		for _, c := range p.calls {
			c.ackErr = ackErr
		}
	}
}

// pipeWait adds WAIT or WAITAOF to a pipeline. After the pipeline has run, the
// returned function returns an error if too few acknowledged.
func (s *Store) pipeWait(ctx context.Context, pipe redis.Pipeliner) func() error {
	if s.opt.Fsync {
		cmd := redis.NewIntSliceCmd(ctx, "waitaof", 1, s.opt.Replicas, s.opt.AckTimeout.Milliseconds())
		_ = pipe.Process(ctx, cmd)
		return func() error {
			n, err := cmd.Result()
			switch {
			case err != nil:
				return err
			case len(n) != 2 || n[0] < 1:
				return fmt.Errorf("the server has not written it to disk within %v", s.opt.AckTimeout)
			}
			return s.checkAcks(n[1])
		}
	}
	cmd := redis.NewIntCmd(ctx, "wait", s.opt.Replicas, s.opt.AckTimeout.Milliseconds())
	_ = pipe.Process(ctx, cmd)
	return func() error {
		n, err := cmd.Result()
		if err != nil {
			return err
		}
		return s.checkAcks(n)
	}
}

func (s *Store) checkAcks(n int64) error {
	if n < int64(s.opt.Replicas) {
		return fmt.Errorf("%d of Options.Replicas %d acknowledged within %v", n, s.opt.Replicas, s.opt.AckTimeout)
	}
	return nil
}

// notAcknowledged is the error of a claim or renewal that too few acknowledged.
func notAcknowledged(cause error) error { return fmt.Errorf("%w: %w", ErrNotAcknowledged, cause) }

// confirm sends an unacknowledged settlement once more and waits again. A new
// master may answer that never received the first sending, so check looks at the
// answer.
func (s *Store) confirm(ctx context.Context, c *call, check func(again *call) error) error {
	if c.ackErr == nil {
		return nil
	}
	again := &call{script: c.script, record: c.record, sweptFence: c.sweptFence, change: c.change, args: c.args}
	s.sendAcked(ctx, []*call{again})
	if again.err == nil {
		if err := check(again); err != nil || again.ackErr == nil {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, c.ackErr)
}

// luaConfirm returns a record, like luaGet, and rewrites its first byte, unchanged: replicas
// apply writes in order, so an acknowledgement of this one covers the record.
const luaConfirm = luaStart + `
for i = 1, n do
	local v = call('GET', KEYS[i])
	if v then call('SETRANGE', KEYS[i], 0, sub(v, 1, 1)) end
	out[i + 1] = v
end
return out
`

// requireConfirmed returns the record that a call has found. If callers act on the record
// (Record.IsAnswer), the call has rewritten its first byte (see luaConfirm). If too few
// acknowledged that write, the error is ErrUnconfirmed, and the record comes without its outcome.
func requireConfirmed(f store.Found, c *call) (store.Found, error) {
	if c.ackErr == nil || !f.Record.IsAnswer() {
		return f, nil
	}
	return withoutOutcome(f), fmt.Errorf("%w: %w", ErrUnconfirmed, c.ackErr)
}

// confirmRead confirms a record that was read. It reads the record again, because a new
// master may have another one.
func (s *Store) confirmRead(ctx context.Context, k *store.Key, f store.Found) (store.Found, error) {
	c := s.newCall(&s.scripts.confirm, k, stateChange{})
	again, err := s.look(ctx, s.changes, k, c)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return again, err
	case err != nil:
		return withoutOutcome(f), err
	}
	return requireConfirmed(again, c)
}

// withoutOutcome is a record that comes with an error.
func withoutOutcome(f store.Found) store.Found {
	f.Record.Outcome = store.Outcome{}
	return f
}

// isClaim reports whether a proposal is a claim: something may run on it.
func isClaim(p *store.Proposal) bool {
	return p.State == store.Started || p.State == store.Processing
}
