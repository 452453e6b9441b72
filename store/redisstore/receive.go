package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/semel-go/semel/store"
)

// luaReceive. ARGV of a record: the whole record. The answer is 1 if it was written, or
// the record that is there, which is as late. The last of KEYS is the set of the records
// in doubt.
const luaReceive = luaStart + luaPut + luaIsAnswer + `
n = n - 1
for i = 1, n do
	local v, old = ARGV[i], call('GET', KEYS[i])
	local fence, updated = unpack_('>I8', v, 18), unpack_('>i8', v, 50)
	local later = not old
	if old and #old >= 70 then
		local before = unpack_('>I8', old, 18)
		later = fence > before or fence == before and updated > unpack_('>i8', old, 50)
	end
	if later then
		local expires = unpack_('>i8', v, 42)
		local linger = expires ~= 0 and string.format('%.0f', math.max(1, math.ceil((expires - now) / 1000) + LINGER))
		if byte(v, 58) == UNKNOWN then call('SADD', KEYS[n + 2], KEYS[i]) else call('SREM', KEYS[n + 2], KEYS[i]) end
		put(KEYS[i], v, fence, expires, linger)
		out[i + 1] = 1
	else
		if ACKED and (old == v or is_answer(old)) then call('SETRANGE', KEYS[i], 0, sub(old, 1, 1)) end
		out[i + 1] = old
	end
end
return out
`

// Receive implements store.Receiver in one round trip, which concurrent claims share.
func (s *Store) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	f, err := s.receive(ctx, &r, steps)
	return f, s.explain("receive", err)
}

func (s *Store) receive(ctx context.Context, r *store.Record, steps []store.Step) (f store.Found, err error) {
	if _, err := s.checkBeforeClaim(ctx, &store.Proposal{Key: r.Key, State: r.State, Policy: r.Policy}); err != nil {
		return f, err
	}
	row, err := encodeRecord(r, steps)
	if err != nil {
		return f, err
	}
	c := s.newCall(&s.scripts.receive, &r.Key, stateChange{}, row)
	if err := s.do(ctx, s.changes, c); err != nil {
		return f, err
	}
	answer := func(c *call) (err error) {
		f = store.Found{Record: *r, Won: true, Now: store.Time(c.now)}
		switch v := c.val.(type) {
		case int64:
			return nil
		case string:
			f.Won = false
			f.Record, err = read(&r.Key, v)
			return err
		}
		return unexpected(c.val)
	}
	if err := answer(c); err != nil {
		return f, err
	}
	if !f.Won {
		return requireConfirmed(f, c)
	}
	written := f
	if err := s.confirm(ctx, c, answer); err != nil {
		return store.Found{}, err
	}
	return written, nil
}

// encodeRecord makes the string of a whole record.
func encodeRecord(r *store.Record, steps []store.Step) ([]byte, error) {
	b := appendHolder(nil, r.Owner, r.Fence)
	for _, us := range [...]int64{store.Micros(r.Created), store.Micros(r.Until), store.Micros(r.Expires), store.Micros(r.Updated)} {
		b = binary.BigEndian.AppendUint64(b, uint64(us))
	}
	b = appendState(b, r.State, r.Attempt)
	rest, err := appendRest(nil, &store.Proposal{
		Key: r.Key, State: r.State, Policy: r.Policy, Holder: r.Holder, Fingerprint: r.Fingerprint, FormerOwners: r.FormerOwners,
		Error: r.LastError, Outcome: r.Outcome,
	})
	if err != nil {
		return nil, err
	}
	identity := 4 + int(binary.BigEndian.Uint32(rest))
	b = append(b, rest[:identity]...)
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for i := range steps {
		step := &steps[i]
		data := store.EncodeStep(step)
		b = binary.BigEndian.AppendUint64(b, uint64(store.Micros(step.Recorded)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(step.Name)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
		b = append(append(b, step.Name...), data...)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	if b = append(b, rest[identity+4:]...); len(b) > maxOutcome {
		return nil, fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, len(b), maxOutcome)
	}
	return b, nil
}
