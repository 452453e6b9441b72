package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/semel-go/semel/store"
)

// The steps of a call are a part of its record's string, so that they expire, move
// and are deleted with it. A step is the time of its recording, 8 bytes; the lengths
// of its name and its data, 4 each; and both.
const stepHead = 16

// luaStep. ARGV of a record: format + owner + fence; the name; the step's data. The
// answer is 1 if the step was added, 0 if the lease is not held, or the data of the
// step of that name that is there.
const luaStep = luaStart + luaSteps + `
for i = 1, n do
	local arg, v = 3 * i - 2, call('GET', KEYS[i])
	if not v or sub(v, 1, 25) ~= ARGV[arg] or byte(v, 58) ~= PROCESSING then
		out[i + 1] = 0
	else
		local name, data = ARGV[arg + 1], ARGV[arg + 2]
		local first, last = steps_of(v)
		local at, old = first, nil
		while at <= last and not old do
			local head = at + 16
			local names, bytes = length(v, at + 8), length(v, at + 12)
			if names == #name and sub(v, head, head + names - 1) == name then old = sub(v, head + names, head + names + bytes - 1) end
			at = head + names + bytes
		end
		if old then
			if ACKED then call('SET', KEYS[i], v, 'KEEPTTL') end
		else
			local entry = pack('>i8I4I4', now, #name, #data) .. name .. data
			call('SET', KEYS[i], sub(v, 1, first - 5) .. pack('>I4', last - first + 1 + #entry) .. sub(v, first, last) .. entry .. sub(v, last + 1))
		end
		out[i + 1] = old or 1
	end
end
return out
`

// RecordStep implements store.Journal in one round trip, which concurrent
// settlements share. It writes the whole record.
func (s *Store) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	return s.explain("record a step", s.recordStep(ctx, &l, &step))
}

func (s *Store) recordStep(ctx context.Context, l *store.Lease, step *store.Step) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	data := store.EncodeStep(step)
	if len(data) > maxOutcome {
		return fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, len(data), maxOutcome)
	}
	c := s.newCall(&s.scripts.step, &l.Key, stateChange{}, appendHolder(nil, l.Owner, l.Fence), []byte(step.Name), data)
	if err := s.do(ctx, s.settles, c); err != nil {
		return err
	}
	if err := stepRecorded(step, c); err != nil {
		return err
	}
	return s.confirm(ctx, c, func(again *call) error { return stepRecorded(step, again) })
}

// stepRecorded returns nil if the answer says that the step is recorded.
func stepRecorded(step *store.Step, c *call) error {
	switch v := c.val.(type) {
	case int64:
		if v != 1 {
			return store.ErrLeaseLost
		}
		return nil
	case string: // a step of this name was recorded before
		recorded, err := store.DecodeStep(step.Name, step.Recorded, []byte(v))
		if err != nil {
			return err
		}
		return store.SameStep(&recorded, step)
	}
	return unexpected(c.val)
}

// Steps implements store.Journal in one round trip, which concurrent reads share. With
// Options.Replicas or Fsync, steps take a second one, which confirms them.
func (s *Store) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	steps, err := s.steps(ctx, &l)
	return steps, s.explain("read steps", err)
}

func (s *Store) steps(ctx context.Context, l *store.Lease) ([]store.Step, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	steps, err := s.readSteps(ctx, s.reads, s.newCall(&s.scripts.get, &l.Key, stateChange{}), l)
	if err != nil || len(steps) == 0 || !s.opt.waitsForAcks() {
		return steps, err
	}
	c := s.newCall(&s.scripts.confirm, &l.Key, stateChange{})
	if steps, err = s.readSteps(ctx, s.changes, c, l); err == nil && c.ackErr != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnconfirmed, c.ackErr)
	}
	return steps, err
}

func (s *Store) readSteps(ctx context.Context, bs *nodeBatchers, c *call, l *store.Lease) ([]store.Step, error) {
	if err := s.do(ctx, bs, c); err != nil {
		return nil, err
	}
	switch v := c.val.(type) {
	case string:
		r, err := read(&l.Key, v)
		if err != nil {
			return nil, err
		}
		if r.Lease() != *l {
			return nil, store.ErrLeaseLost
		}
		return decodeSteps(v)
	case nil:
		return nil, store.ErrLeaseLost
	}
	return nil, unexpected(c.val)
}

// decodeSteps reads the steps of a record that decode has read.
func decodeSteps(v string) (steps []store.Step, err error) {
	c := fieldReader{rest: v[headLen+int(binary.BigEndian.Uint32([]byte(v[headLen-4:headLen]))):]}
	for part := c.steps(); len(part) > 0; {
		if len(part) < stepHead {
			return nil, fmt.Errorf("%w: a step is cut short", store.ErrCorrupt)
		}
		head := []byte(part[:stepHead])
		name, data := uint64(binary.BigEndian.Uint32(head[8:])), uint64(binary.BigEndian.Uint32(head[12:]))
		part = part[stepHead:]
		if name+data > uint64(len(part)) {
			return nil, fmt.Errorf("%w: a step is cut short", store.ErrCorrupt)
		}
		step, err := store.DecodeStep(part[:name], store.Time(int64(binary.BigEndian.Uint64(head))), []byte(part[name:name+data]))
		if err != nil {
			return nil, err
		}
		steps, part = append(steps, step), part[name+data:]
	}
	return steps, nil
}

// steps skips the steps of a record and returns them.
func (c *fieldReader) steps() string {
	if len(c.rest) < 4 {
		c.bad = true
		return ""
	}
	n := uint64(binary.BigEndian.Uint32([]byte(c.rest[:4])))
	if c.rest = c.rest[4:]; n > uint64(len(c.rest)) {
		c.bad = true
		return ""
	}
	part := c.rest[:n]
	c.rest = c.rest[n:]
	return part
}
