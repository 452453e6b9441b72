package redisstore

import (
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// script is one atomic step on the server, for one record or many. KEYS has
// the name of each record, and in the end that of the floor, ARGV what each
// record takes. The answer is the clock, and then one part a record. In a
// cluster each record goes by itself, for a script must keep to one slot there.
//
// Places count from 1 in Lua, so a place of row.go is one more here.
type script struct {
	text, sha string
	each      int // how many of ARGV a record takes
}

type scripts struct{ now, get, claim, swap, settle, renew, sweep, undo script }

// list has each of them.
func (s *scripts) list() [8]*script {
	return [...]*script{&s.now, &s.get, &s.claim, &s.swap, &s.settle, &s.renew, &s.sweep, &s.undo}
}

// Numbers are exact up to 2^53, which is the year 2255 in microseconds. Floor
// is the highest fence that was swept.
const luaStart = `
local call, sub, byte, pack, unpack_ = redis.call, string.sub, string.byte, struct.pack, struct.unpack
local n, now = #KEYS - 1, CLOCK
local out = {now}
`

// luaTimes is what comes of the two durations of a change, "until expires" in
// microseconds with nothing for none: the three times as a record has them,
// when it expires, and what Redis is told of it. Most of a batch have the same.
const luaTimes = `
local known = {}
local function times(d)
	local t = known[d]
	if not t then
		local till, expires = string.match(d, '^(%-?%d*) (%-?%d*)$')
		till, expires = till ~= '' and now + till or 0, expires ~= '' and now + expires or 0
		t = {pack('>i8i8i8', till, expires, now), expires}
		if expires ~= 0 then t[3] = string.format('%.0f', math.max(1, math.ceil((expires - now) / 1000) + LINGER)) end
		known[d] = t
	end
	return t
end
`

// put keeps v, and with it its own expiry: none for a record that does not
// expire, which therefore outlives its lease. A record that Redis will remove
// before the clock has come to its fence leaves the fence behind as the floor.
const luaPut = luaTimes + `
local function raise(fence)
	local floor = call('GET', KEYS[n + 1])
	if not floor or tonumber(floor) < fence then call('SET', KEYS[n + 1], string.format('%.0f', fence)) end
end
local function put(name, v, fence, t)
	if not t[3] then
		call('SET', name, v)
		return
	end
	call('SET', name, v, 'PX', t[3])
	if fence > t[2] + LINGER * 1000 then raise(fence) end
end
`

// ARGV: format + owner, times, the rest. A number: it was inserted with that
// fence. Else what is there. If all are new, and do not expire, they are
// inserted together.
const luaClaim = luaStart + luaPut + `
local fence = now
local floor = call('GET', KEYS[n + 1])
if floor and tonumber(floor) >= now then fence = tonumber(floor) + 1 end
local both, new, all = pack('>i8i8', fence, now), call('EXISTS', unpack(KEYS, 1, n)) == 0, {}
for i = 1, n do
	local arg = 3 * i - 2
	local t = times(ARGV[arg + 1])
	local v, old = ARGV[arg] .. both .. t[1] .. ARGV[arg + 2]
	if new and not t[3] then
		all[#all + 1] = KEYS[i]
		all[#all + 1] = v
	elseif t[3] then
		old = call('SET', KEYS[i], v, 'NX', 'GET', 'PX', t[3])
	else
		old = call('SET', KEYS[i], v, 'NX', 'GET')
	end
	out[i + 1] = old or fence
	if ACKED and old and sub(old, 1, 17) == ARGV[arg] and byte(old, 58) == byte(ARGV[arg + 2]) then call('SET', KEYS[i], old, 'KEEPTTL') end
end
if #all > 0 then call('MSET', unpack(all)) end
return out
`

// ARGV: format + owner, times, the rest; format + owner + fence as seen, until
// + expires + state as seen, restart. Two numbers: it was replaced, with that
// fence, and was created then; if changes are acknowledged, what it replaced
// comes last. Else what is there, or nothing.
const luaSwap = luaStart + luaPut + `
for i = 1, n do
	local arg = 6 * i - 5
	local v = call('GET', KEYS[i])
	if not v then
		out[i + 1] = false
	elseif #v < 70 or sub(v, 1, 25) ~= ARGV[arg + 3] or sub(v, 34, 49) .. sub(v, 58, 58) ~= ARGV[arg + 4] then
		out[i + 1] = v
		if ACKED and sub(v, 1, 17) == ARGV[arg] and byte(v, 58) == byte(ARGV[arg + 2]) then call('SET', KEYS[i], v, 'KEEPTTL') end
	else
		local fence = math.max(now, unpack_('>I8', v, 18) + 1)
		local created, t = ARGV[arg + 5] == '1' and now or unpack_('>i8', v, 26), times(ARGV[arg + 1])
		put(KEYS[i], ARGV[arg] .. pack('>i8i8', fence, created) .. t[1] .. ARGV[arg + 2], fence, t)
		out[i + 1] = {fence, created, ACKED and v or nil}
	end
end
return out
`

// ARGV: format + owner + fence, times, state + attempt, result. 1: settled. 0:
// not held, or gone. Else what is there: it may have been settled before.
const luaSettle = luaStart + luaPut + `
local seen = call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
	local arg, v = 4 * i - 3, seen[i]
	if not v then
		out[i + 1] = 0
	elseif sub(v, 1, 25) ~= ARGV[arg] then
		out[i + 1] = byte(v, 1) == byte(ARGV[arg]) and 0 or v
	elseif byte(v, 58) ~= 2 then
		out[i + 1] = v
		if ACKED and byte(v, 58) == byte(ARGV[arg + 2]) then call('SET', KEYS[i], v, 'KEEPTTL') end
	else
		local t, b1, b2, b3, b4 = times(ARGV[arg + 1]), byte(v, 67, 70)
		local last = 70 + ((b1 * 256 + b2) * 256 + b3) * 256 + b4
		put(KEYS[i], sub(v, 1, 33) .. t[1] .. ARGV[arg + 2] .. sub(v, 67, last) .. ARGV[arg + 3], unpack_('>I8', v, 18), t)
		out[i + 1] = 1
	end
end
return out
`

// ARGV: format + owner + fence, d. 1: renewed.
const luaRenew = luaStart + luaTimes + `
for i = 1, n do
	local arg = 2 * i - 1
	local head = call('GETRANGE', KEYS[i], 0, 57)
	if sub(head, 1, 25) == ARGV[arg] and byte(head, 58) == 2 then
		call('SETRANGE', KEYS[i], 33, times(ARGV[arg + 1])[1])
		out[i + 1] = 1
	else
		out[i + 1] = 0
	end
end
return out
`

const luaGet = luaStart + `
for i = 1, n do out[i + 1] = call('GET', KEYS[i]) end
return out
`

const luaNow = `return {CLOCK}`

// 1: it had expired, and is deleted. A value: it has lapsed. Else 0. It
// deletes first, for a server without memory allows writes only after that.
const luaSweep = luaStart + luaPut + `
for i = 1, n do
	local head = call('GETRANGE', KEYS[i], 0, 57)
	out[i + 1] = 0
	if #head == 58 and byte(head, 1) == 1 then
		local state, expires = byte(head, 58), unpack_('>i8', head, 42)
		if state >= 3 and state <= 5 and expires ~= 0 and expires <= now then
			call('DEL', KEYS[i])
			raise(unpack_('>I8', head, 18))
			out[i + 1] = 1
		elseif state <= 2 and unpack_('>i8', head, 34) <= now then
			out[i + 1] = call('GET', KEYS[i])
		end
	end
end
return out
`

// ARGV: format + owner + fence of a claim that must not count, and what it
// replaced, or nothing if it was new. The fence stays used.
const luaUndo = luaStart + luaPut + `
for i = 1, n do
	local arg = 2 * i - 1
	local v = call('GET', KEYS[i])
	out[i + 1] = 0
	if v and sub(v, 1, 25) == ARGV[arg] and byte(v, 58) <= 2 then
		local fence, old = unpack_('>I8', v, 18), ARGV[arg + 1]
		if old == '' then
			call('DEL', KEYS[i])
			raise(fence)
		else
			local expires = unpack_('>i8', old, 42)
			put(KEYS[i], sub(old, 1, 17) .. sub(v, 18, 25) .. sub(old, 26), fence, times(expires ~= 0 and ' ' .. string.format('%.0f', expires - now) or ' '))
		end
		out[i + 1] = 1
	end
end
return out
`

// newScripts are the scripts of a store with these options.
func newScripts(o *Options) *scripts {
	acked := strconv.FormatBool(o.acked())
	fill := strings.NewReplacer("CLOCK", o.clock, "LINGER", strconv.FormatInt(int64(o.Linger/time.Millisecond), 10), "ACKED", acked)
	of := func(text string, each int) script {
		text = fill.Replace(text)
		sum := sha1.Sum([]byte(text)) //nolint:gosec // it is how Redis names scripts
		return script{text, hex.EncodeToString(sum[:]), each}
	}
	return &scripts{of(luaNow, 0), of(luaGet, 0), of(luaClaim, 3), of(luaSwap, 6), of(luaSettle, 4), of(luaRenew, 2), of(luaSweep, 0), of(luaUndo, 2)}
}
