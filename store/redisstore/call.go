package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

type (
	batcher = coalesce.Batcher[*call, struct{}]
	item    = coalesce.Item[*call, struct{}]
)

// call is one script for one record, and its answer.
type call struct {
	script             *script
	record, sweptFence string
	change             stateChange
	args               [][]byte
	conflict           uint64 // changes with the same value take turns

	now    int64 // the server's clock when the script ran
	val    any   // the record's part of the answer
	err    error
	ackErr error // nil: as many servers have acknowledged it as the options ask for
}

// newCall is a script for the record of a key.
func (s *Store) newCall(sc *script, k *store.Key, t stateChange, args ...[]byte) *call {
	id := k.Digest()
	c := &call{script: sc, change: t, conflict: conflictID(id), args: args}
	c.record, c.sweptFence = s.name(id)
	return c
}

// newBatcher makes a batcher for changes or for reads. It sends concurrent calls
// together.
func (s *Store) newBatcher(changes bool) *batcher {
	o := &coalesce.Options[*call]{MaxBatch: s.opt.MaxBatch, Flushers: s.opt.Flushers, Detached: !s.heedsContext()}
	send := s.exchange
	if changes {
		o.Conflict = func(c **call) uint64 { return (*c).conflict }
		send = s.send
	}
	return coalesce.New(func(ctx context.Context, batch []*item) {
		calls := make([]*call, len(batch))
		for i, it := range batch {
			calls[i] = it.Req
		}
		send(ctx, calls)
	}, o)
}

// do sends a call through the batcher of its node and returns its error.
func (s *Store) do(ctx context.Context, bs *nodeBatchers, c *call) error {
	if _, err := bs.forNode(s.nodeOf(ctx, c)).Do(ctx, c); err != nil {
		return err
	}
	return c.err
}

// send sends changes, and waits for acknowledgements if the options ask for it.
func (s *Store) send(ctx context.Context, calls []*call) {
	if s.opt.waitsForAcks() {
		s.sendAcked(ctx, calls)
		return
	}
	s.exchange(ctx, calls)
}

// exchange runs the scripts in one round trip to each node involved.
func (s *Store) exchange(ctx context.Context, calls []*call) {
	s.sendWithFallback(calls, func(commands []*command) { sendCommands(ctx, s.client, commands) })
}

// sendWithFallback packs calls into commands and sends them, and then sends again what
// the server refused: first with the script's text, then record by record, because a
// script with an error may have changed some of its records. A change that is sent
// again is recognized by its owner token, and is applied once.
func (s *Store) sendWithFallback(calls []*call, send func([]*command)) {
	for commands := s.pack(calls); len(commands) > 0; {
		send(commands)
		var again []*command
		for _, p := range commands {
			again = append(again, p.retryCommands()...)
		}
		commands = again
	}
}

// command is one script for some records, sent by its hash or with its text.
type command struct {
	calls    []*call
	bytes    int
	sendText bool // not only its hash
	cmd      *redis.Cmd
}

// maxCommand bounds the bytes of a command with more than one record, so that one
// script does not block the server for long.
const maxCommand = 1 << 20

// pack groups calls with one script and the same state change into commands. In a
// cluster each call is a command.
func (s *Store) pack(calls []*call) (commands []*command) {
	for i, c := range calls {
		p := s.joinable(commands, c)
		if p == nil {
			p = &command{}
			if i == 0 && s.cluster == nil { // it usually takes all calls
				p.calls = make([]*call, 0, len(calls))
			}
			commands = append(commands, p)
		}
		p.calls = append(p.calls, c)
		p.bytes += c.size()
	}
	return commands
}

// joinable returns the command that a call can join, among the last 16.
func (s *Store) joinable(commands []*command, c *call) *command {
	if s.cluster != nil {
		return nil
	}
	for i := len(commands) - 1; i >= max(0, len(commands)-16); i-- {
		if p := commands[i]; p.calls[0].script == c.script && p.calls[0].change == c.change {
			if len(p.calls) >= s.opt.MaxBatch || p.bytes+c.size() > maxCommand {
				return nil
			}
			return p
		}
	}
	return nil
}

// size is the number of bytes of the call's arguments.
func (c *call) size() (n int) {
	for _, a := range c.args {
		n += len(a)
	}
	return n
}

// build makes the client's command. Names are strings, for hooks that print them
// and a cluster that goes by them.
func (p *command) build(ctx context.Context) *redis.Cmd {
	first := p.calls[0]
	sc := first.script
	args := make([]any, 0, 8+len(p.calls)*(1+len(first.args)))
	if p.sendText {
		args = append(args, "eval", sc.text)
	} else {
		args = append(args, "evalsha", sc.sha)
	}
	if first.record == "" { // the script that only returns the time
		args = append(args, 0)
	} else {
		count := len(args)
		args = append(args, nil) // the number of keys
		for _, c := range p.calls {
			args = append(args, c.record)
		}
		if sc.hasVersions {
			for _, c := range p.calls {
				args = append(args, c.record+versionsName)
			}
		}
		if sc.hasSweptFence {
			args = append(args, first.sweptFence) // all have the same
		}
		if sc.hasInDoubtSet || sc.hasStateChange && first.change.state == store.Unknown {
			args = append(args, doubtsOf(first.sweptFence))
		}
		args[count] = len(args) - count - 1
	}
	if sc.hasStateChange {
		args = first.change.appendArgs(args)
	}
	for _, c := range p.calls {
		for _, arg := range c.args {
			args = append(args, arg)
		}
	}
	p.cmd = redis.NewCmd(ctx, args...)
	return p.cmd
}

// keepAnswer keeps an answer that came before the connection broke. The client gives the
// error of the connection to all commands of a pipeline, also to those that were answered.
func (p *command) keepAnswer() {
	_, refused := errors.AsType[redis.Error](p.cmd.Err())
	if parts, _ := p.cmd.Val().([]any); len(parts) > 0 && !refused {
		p.cmd.SetErr(nil)
	}
}

// errNil is the error for a nil answer, which no script gives. It must not be
// taken for an absent record.
var errNil = errors.New("the server answered nothing; is a proxy in between?")

// read sets each call's part of the answer.
func (p *command) read() {
	val, err := p.cmd.Result()
	parts, _ := val.([]any)
	now := int64(0)
	switch {
	case err == redis.Nil: //nolint:errorlint // the client gives it bare
		err = errNil
	case err == nil && p.calls[0].record == "" && len(parts) == 1:
		now, _ = parts[0].(int64)
	case err == nil && (len(parts) == 2 || len(parts) == 1+len(p.calls)):
		now, _ = parts[0].(int64)
		parts = parts[1:]
	case err == nil:
		err = unexpected(val)
	}
	if err == nil && now == 0 {
		err = unexpected(val)
	}
	for i, c := range p.calls {
		if c.now, c.val, c.err = now, nil, err; err == nil {
			c.val = parts[min(i, len(parts)-1)]
		}
	}
}

// retryCommands returns the commands to send instead: the script's text, if the server
// does not have the script (after SCRIPT FLUSH, a restart or a fail-over); each
// record alone, if the server refused the script.
func (p *command) retryCommands() []*command {
	err := p.calls[0].err
	if noScript(err) && !p.sendText {
		return []*command{{calls: p.calls, sendText: true}}
	}
	if _, answered := errors.AsType[redis.Error](err); !answered || len(p.calls) == 1 {
		return nil
	}
	alone := make([]*command, len(p.calls))
	for i, c := range p.calls {
		alone[i] = &command{calls: []*call{c}, sendText: p.sendText}
	}
	return alone
}

// sender is a client of all nodes or of one.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// sendCommands sends commands and reads the answers. After a broken connection the
// client may send them again.
func sendCommands(ctx context.Context, to sender, commands []*command) {
	if len(commands) == 1 {
		_ = to.Process(ctx, commands[0].build(ctx)) // the command has the error
		commands[0].read()
		return
	}
	pipe := to.Pipeline()
	for _, p := range commands {
		_ = pipe.Process(ctx, p.build(ctx)) // it only queues
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for _, p := range commands {
		p.keepAnswer()
		p.read()
	}
}
