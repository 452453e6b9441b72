package redisstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// The timers of an operation are a sorted set, whose scores are the times at which they
// are due, and a hash of their versions in the same slot.
const (
	timersName   = "timers-"
	versionsName = "-versions" // the suffix of the Redis key of the hash, after that of the set
)

// luaTimer is the common start of the scripts of timers. KEYS has the sorted sets, and then their hashes.
// The server must know of both: while their slot moves, it then refuses (TRYAGAIN) a script
// for a set and a hash that are on different nodes. Otherwise SetTimer would make a second
// hash, and the move could not go on.
const luaTimer = luaStart + `
n = n / 2
local function versions(i) return KEYS[i] .. '-versions' end
`

// luaSetTimer. ARGV of a timer: its member; the version seen, or nothing; the next
// version; the wait. The answer is 1 if the timer has the next version.
const luaSetTimer = luaTimer + `
for i = 1, n do
	local member, seen, next, wait = unpack(ARGV, 4 * i - 3, 4 * i)
	local old = call('HGET', versions(i), member)
	if seen ~= '' and old ~= seen then
		out[i + 1] = old == next and 1 or 0
		if ACKED and old == next then call('HSET', versions(i), member, next) end
	else
		call('HSET', versions(i), member, next)
		call('ZADD', KEYS[i], string.format('%.0f', now + tonumber(wait)), member)
		out[i + 1] = 1
	end
end
return out
`

// luaDropTimer. ARGV of a timer: its member; the version seen.
const luaDropTimer = luaTimer + `
for i = 1, n do
	local member = ARGV[2 * i - 1]
	if call('HGET', versions(i), member) == ARGV[2 * i] then
		call('HDEL', versions(i), member)
		call('ZREM', KEYS[i], member)
	end
	out[i + 1] = 1
end
return out
`

// luaDueTimers. ARGV of an operation: how far from now; the limit. The answer is the
// member, the time and the version of each timer. Those that cannot be read, because
// they have no whole version, do not count for the limit.
const luaDueTimers = luaTimer + `
for i = 1, n do
	local last = string.format('%.0f', now + tonumber(ARGV[2 * i - 1]))
	local due, offset, limit, left = {}, 0, tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i])
	repeat
		local found = call('ZRANGEBYSCORE', KEYS[i], '-inf', last, 'WITHSCORES', 'LIMIT', offset, limit)
		offset = offset + limit
		for j = 1, #found, 2 do
			local version = call('HGET', versions(i), found[j]) or ''
			due[#due + 1], due[#due + 2], due[#due + 3] = found[j], string.format('%.0f', tonumber(found[j + 1])), version
			if #version == 16 then left = left - 1 end
		end
	until left <= 0 or #found < 2 * limit
	out[i + 1] = due
end
return out
`

// timerCall is a script for the timers of an operation.
func (s *Store) timerCall(sc *script, operation string, conflict uint64, args ...[]byte) *call {
	d := store.Key{Operation: operation}.Digest()
	b := s.appendBucket(nil, int(binary.BigEndian.Uint16(d[16:]))%buckets)
	c := &call{script: sc, conflict: conflict, args: args}
	c.record = string(base64.RawURLEncoding.AppendEncode(append(b, timersName...), d[:16]))
	return c
}

// member is the name of a timer in its set. No tenant has a zero byte.
func member(k *store.Key) []byte { return []byte(k.Tenant + "\x00" + k.Value) }

// SetTimer implements store.Timers in one round trip.
func (s *Store) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	var version []byte
	if seen != (store.Owner{}) {
		version = seen[:]
	}
	c := s.timerCall(&s.scripts.setTimer, k.Operation, conflictID(k.Digest()), member(&k), version, next[:], strconv.AppendInt(nil, wait.Microseconds(), 10))
	set, err := s.changeTimer(ctx, c)
	return set && err == nil, s.explain("set a timer", err)
}

// DropTimer implements store.Timers in one round trip.
func (s *Store) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	c := s.timerCall(&s.scripts.dropTimer, k.Operation, conflictID(k.Digest()), member(&k), seen[:])
	_, err := s.changeTimer(ctx, c)
	return s.explain("drop a timer", err)
}

func (s *Store) changeTimer(ctx context.Context, c *call) (done bool, err error) {
	if s.closed.Load() {
		return false, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := s.do(ctx, s.changes, c); err != nil {
		return false, err
	}
	answer := func(c *call) (err error) {
		n, ok := c.val.(int64)
		if done = n == 1; !ok {
			err = unexpected(c.val)
		}
		return err
	}
	if err := answer(c); err != nil {
		return false, err
	}
	return done, s.confirm(ctx, c, answer)
}

// DueTimers implements store.Timers in one round trip. With the error of a timer that cannot
// be read it returns the others.
func (s *Store) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	due, now, err := s.dueTimers(ctx, operation, within, limit)
	return due, now, s.explain("read timers", err)
}

func (s *Store) dueTimers(ctx context.Context, operation string, within time.Duration, limit int) (due []store.Timer, now time.Time, err error) {
	if s.closed.Load() {
		return nil, now, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, now, err
	}
	c := s.timerCall(&s.scripts.dueTimers, operation, 0, strconv.AppendInt(nil, within.Microseconds(), 10), strconv.AppendInt(nil, int64(limit), 10))
	if err := s.do(ctx, s.reads, c); err != nil {
		return nil, now, err
	}
	fields, ok := c.val.([]any)
	if !ok || len(fields)%3 != 0 {
		return nil, now, unexpected(c.val)
	}
	var unreadable error // the first one
	for ; len(fields) > 0; fields = fields[3:] {
		name, _ := fields[0].(string)
		micros, _ := fields[1].(string)
		version, _ := fields[2].(string)
		t := store.Timer{Key: store.Key{Operation: operation}}
		at, err := strconv.ParseInt(micros, 10, 64)
		if err != nil || len(version) != len(t.Version) {
			unreadable = cmp.Or(unreadable, fmt.Errorf("%w: a timer is due at %q and has a version of %d bytes", store.ErrCorrupt, micros, len(version)))
			continue
		}
		t.Key.Tenant, t.Key.Value, _ = strings.Cut(name, "\x00")
		t.Version, t.Due = store.Owner([]byte(version)), store.Time(at)
		due = append(due, t)
	}
	return due[:min(len(due), max(limit, 0))], store.Time(c.now), unreadable
}
