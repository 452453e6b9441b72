package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

type (
	lane = coalesce.Lane[*call, struct{}]
	item = coalesce.Item[*call, struct{}]
)

// call is a script for one record, and what came back.
type call struct {
	script        *script
	record, floor string
	terms         terms
	args          [maxArgs]text // script.each of them
	number        uint64

	now   int64 // the clock of the step
	val   any   // the record's part of the answer
	err   error
	acked error // why it is not acknowledged as Options.Replicas demands

	texts    []byte // the args, one behind the other
	nargs    int
	from     int  // where the next one begins
	answered bool // no flush has it any more
}

const maxArgs = 5

// text is an argument. It goes by its address, for an any of a string or of
// bytes is an allocation.
type text []byte

// MarshalBinary is how the client takes it.
func (t *text) MarshalBinary() ([]byte, error) { return *t, nil }

// end ends a text that was added to texts.
func (c *call) end() {
	n := len(c.texts)
	c.args[c.nargs] = c.texts[c.from:n:n]
	c.nargs, c.from = c.nargs+1, n
}

// calls are taken again, for a crowd of them is most of what the collector
// would have to look after.
var calls = sync.Pool{New: func() any { return &call{texts: make([]byte, 0, 512)} }}

// maxKept is the most bytes of texts that are kept for another call.
const maxKept = 8 << 10

// newCall is a script for the record of a key, still without its texts.
func (s *Store) newCall(sc *script, k *store.Key, t terms) *call {
	id := k.Digest()
	c := calls.Get().(*call)
	c.script, c.terms, c.number = sc, t, numberOf(id)
	c.record, c.floor = s.name(id)
	return c
}

// free gives a call back whose answer was taken. One whose caller has left is
// not: its flush may still read it.
func (c *call) free() {
	if c.answered && cap(c.texts) <= maxKept {
		*c = call{texts: c.texts[:0]}
		calls.Put(c)
	}
}

// newLane is a lane of changes, or of reads. What it has gathered goes
// together, and each caller takes what came of its own call.
func (s *Store) newLane(changes bool) *lane {
	o := &coalesce.Options[*call]{MaxBatch: s.opt.MaxBatch, Flushers: s.opt.Flushers}
	send := s.exchange
	if changes {
		o.Conflict = func(c **call) uint64 { return (*c).number }
		send = s.send
	}
	return coalesce.New(func(ctx context.Context, batch []*item) {
		cs := make([]*call, len(batch))
		for i, it := range batch {
			cs[i] = it.Req
		}
		send(ctx, cs)
	}, o)
}

// do sends a call through the lane of its node.
func (s *Store) do(ctx context.Context, ls *lanes, c *call) error {
	if _, err := ls.at(s.nodeOf(ctx, c)).Do(ctx, c); err != nil {
		return err
	}
	c.answered = true
	return c.err
}

// send makes changes, and waits until they are acknowledged if they have to be.
func (s *Store) send(ctx context.Context, cs []*call) {
	if s.opt.acked() {
		s.sendAcked(ctx, cs)
		return
	}
	s.exchange(ctx, cs)
}

// exchange runs the scripts in one round trip to each node that is concerned.
func (s *Store) exchange(ctx context.Context, cs []*call) {
	s.resolve(cs, func(ps []*parcel) { exchange(ctx, s.client, ps) })
}

// resolve packs the calls, has the parcels sent, and those again that a server
// did not carry out as they were: with the script, and then key by key, for a
// part of what was sent may have been carried out, and a part not. Each finds
// what it did itself.
func (s *Store) resolve(cs []*call, send func([]*parcel)) {
	for ps := s.pack(cs); len(ps) > 0; {
		send(ps)
		var again []*parcel
		for _, p := range ps {
			again = append(again, p.again()...)
		}
		ps = again
	}
}

// parcel is a command: a script for some records, by its name or whole.
type parcel struct {
	calls []*call
	bytes int
	whole bool
	cmd   *redis.Cmd
}

// maxParcel is the most bytes of a parcel that has more than one record: one
// script must not hold up the server for long.
const maxParcel = 1 << 20

// pack makes parcels of calls with one script and the same terms; in a cluster
// each call is one.
func (s *Store) pack(cs []*call) (ps []*parcel) {
	for i, c := range cs {
		p := s.open(ps, c)
		if p == nil {
			p = &parcel{}
			if i == 0 && s.cluster == nil { // as a rule all are its
				p.calls = make([]*call, 0, len(cs))
			}
			ps = append(ps, p)
		}
		p.calls = append(p.calls, c)
		p.bytes += c.size()
	}
	return ps
}

// open is the parcel that has room for a call, among the last few.
func (s *Store) open(ps []*parcel, c *call) *parcel {
	if s.cluster != nil {
		return nil
	}
	for i := len(ps) - 1; i >= max(0, len(ps)-16); i-- {
		if p := ps[i]; p.calls[0].script == c.script && p.calls[0].terms == c.terms {
			if len(p.calls) >= s.opt.MaxBatch || p.bytes+c.size() > maxParcel {
				return nil
			}
			return p
		}
	}
	return nil
}

// size is about how many bytes the call takes.
func (c *call) size() (n int) {
	for _, a := range c.args {
		n += len(a)
	}
	return n
}

// arm makes the parcel's command. Names are strings, for hooks that print them
// and a cluster that goes by them.
func (p *parcel) arm(ctx context.Context) *redis.Cmd {
	first := p.calls[0]
	sc := first.script
	args := make([]any, 0, 7+len(p.calls)*(1+sc.each))
	if p.whole {
		args = append(args, "eval", sc.text)
	} else {
		args = append(args, "evalsha", sc.sha)
	}
	if first.record == "" { // the script that only tells the time
		args = append(args, 0)
	} else {
		args = append(args, len(p.calls)+1)
		for _, c := range p.calls {
			args = append(args, c.record)
		}
		args = append(args, first.floor) // all have the same
	}
	if sc.terms {
		args = first.terms.appendArgs(args)
	}
	for _, c := range p.calls {
		for i := range c.args[:sc.each] {
			args = append(args, &c.args[i])
		}
	}
	p.cmd = redis.NewCmd(ctx, args...)
	return p.cmd
}

// errNil: the scripts never answer nothing, which the client gives as an
// error. It must not be taken for absence.
var errNil = errors.New("the server answered nothing; is a proxy in between?")

// read gives each call its part of the answer.
func (p *parcel) read() {
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
		err = strange(val)
	}
	if err == nil && now == 0 {
		err = strange(val)
	}
	for i, c := range p.calls {
		if c.now, c.val, c.err = now, nil, err; err == nil {
			c.val = parts[min(i, len(parts)-1)]
		}
	}
}

// again are the parcels to send instead: the script whole, if the server does
// not have it (after SCRIPT FLUSH, a restart, a fail-over); each record by
// itself, if the server refused one of them.
func (p *parcel) again() []*parcel {
	err := p.calls[0].err
	if noScript(err) && !p.whole {
		return []*parcel{{calls: p.calls, whole: true}}
	}
	if _, answered := errors.AsType[redis.Error](err); !answered || len(p.calls) == 1 {
		return nil
	}
	alone := make([]*parcel, len(p.calls))
	for i, c := range p.calls {
		alone[i] = &parcel{calls: []*call{c}, whole: p.whole}
	}
	return alone
}

// sender is a client, of all nodes or of one.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// exchange sends parcels, and reads the answers. The client may send them
// again after a broken connection.
func exchange(ctx context.Context, to sender, ps []*parcel) {
	if len(ps) == 1 {
		_ = to.Process(ctx, ps[0].arm(ctx)) // the command has the error
		ps[0].read()
		return
	}
	pipe := to.Pipeline()
	for _, p := range ps {
		_ = pipe.Process(ctx, p.arm(ctx)) // it only queues
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for _, p := range ps {
		p.read()
	}
}

// strange is an answer that no script gives.
func strange(val any) error {
	return fmt.Errorf("the server's answer is a %T that no script gives", val)
}
