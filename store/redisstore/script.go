package redisstore

import (
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// script is one atomic step on the server, for one record or many. KEYS has
// the name of each record, and in the end that of the floor; ARGV the terms of
// a change, which all have in common, and then what each record takes. The
// answer is the clock, and then one part a record, or one that goes for all. In
// a cluster each record goes by itself, for a script must keep to one slot
// there.
//
// Lua hashes each byte of each string that it makes, so what costs is how many
// there are, and how long.
//
// Places count from 1 in Lua, so a place of row.go is one more here.
type script struct {
	text, sha string
	terms     bool
	each      int // how many of ARGV a record takes
}

type scripts struct{ now, get, claim, swap, settle, renew, sweep script }

// Numbers are exact up to 2^53, which is the year 2255 in microseconds. Floor
// is the highest fence that was swept.
const luaStart = `
local KEYS, ARGV = KEYS, ARGV
local call, sub, byte, pack, unpack_ = redis.call, string.sub, string.byte, struct.pack, struct.unpack
local n, now = #KEYS - 1, CLOCK
local out = {now}
`

// luaTimes is what comes of the terms: until and expires, in microseconds from
// now, or nothing for none; state and attempt. Times is what the record has
// from until to attempt, linger how long Redis keeps it.
const luaTimes = `
local till, expires = tonumber(ARGV[1]), tonumber(ARGV[2])
local linger = expires and string.format('%.0f', math.max(1, math.ceil(expires / 1000) + LINGER))
till, expires = till and now + till or 0, expires and now + expires or 0
local times = pack('>i8i8i8', till, expires, now) .. ARGV[3]
`

// put keeps v, and with it its own expiry: none for a record that does not
// expire, which therefore outlives its lease. A record that Redis will remove
// before the clock has come to its fence leaves the fence behind as the floor.
const luaPut = `
local function raise(fence)
	local floor = call('GET', KEYS[n + 1])
	if not floor or tonumber(floor) < fence then call('SET', KEYS[n + 1], string.format('%.0f', fence)) end
end
local function put(name, v, fence, expires, linger)
	if not linger then
		call('SET', name, v)
		return
	end
	call('SET', name, v, 'PX', linger)
	if fence > expires + LINGER * 1000 then raise(fence) end
end
`

// ARGV: format + owner, the rest. A number: it was inserted with that fence.
// Else what is there. If all are new, and do not expire, they are inserted
// together. A server that takes no writes now refuses that whatever there is, so
// it is asked then, too.
const luaClaim = luaStart + luaTimes + `
local fence = now
local floor = call('GET', KEYS[n + 1])
if floor and tonumber(floor) >= now then fence = tonumber(floor) + 1 end
local both, all = pack('>i8i8', fence, now) .. times, {}
for i = 1, n do
	all[2 * i - 1] = KEYS[i]
	all[2 * i] = ARGV[2 * i + 2] .. both .. ARGV[2 * i + 3]
end
if not linger then
	local new = redis.pcall('MSETNX', unpack(all))
	if new == 1 then return {now, fence} end
	if new ~= 0 and not ({OOM = 1, MISCONF = 1, NOREPLICAS = 1})[string.match(new.err, '%u+')] then return new end
end
local seen = call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
	local old = seen[i]
	if not old and linger then
		old = call('SET', KEYS[i], all[2 * i], 'NX', 'GET', 'PX', linger)
	elseif not old then
		old = call('SET', KEYS[i], all[2 * i], 'NX', 'GET')
	elseif ACKED and sub(old, 1, 17) == ARGV[2 * i + 2] and byte(old, 58) == byte(ARGV[3]) then
		call('SET', KEYS[i], old, 'KEEPTTL')
	end
	out[i + 1] = old or fence
end
return out
`

// ARGV: format + owner, the rest; format + owner + fence as seen, until +
// expires + state as seen, restart. Two numbers: it was replaced, with that
// fence, and was created then. Else what is there, or nothing.
const luaSwap = luaStart + luaTimes + luaPut + `
for i = 1, n do
	local arg = 5 * i - 1
	local v = call('GET', KEYS[i])
	if not v then
		out[i + 1] = false
	elseif #v < 70 or sub(v, 1, 25) ~= ARGV[arg + 2] or sub(v, 34, 49) .. sub(v, 58, 58) ~= ARGV[arg + 3] then
		out[i + 1] = v
		if ACKED and sub(v, 1, 17) == ARGV[arg] and byte(v, 58) == byte(ARGV[3]) then call('SET', KEYS[i], v, 'KEEPTTL') end
	else
		local fence = math.max(now, unpack_('>I8', v, 18) + 1)
		local created = ARGV[arg + 4] == '1' and now or unpack_('>i8', v, 26)
		put(KEYS[i], ARGV[arg] .. pack('>i8i8', fence, created) .. times .. ARGV[arg + 1], fence, expires, linger)
		out[i + 1] = {fence, created}
	end
end
return out
`

// ARGV: format + owner + fence, result. 1: settled. 0: not held, or gone. Else
// what is there: it may have been settled before.
const luaSettle = luaStart + luaTimes + luaPut + `
local seen, done = call('MGET', unpack(KEYS, 1, n)), 0
for i = 1, n do
	local arg, v = 2 * i + 2, seen[i]
	if not v then
		out[i + 1] = 0
	elseif sub(v, 1, 25) ~= ARGV[arg] then
		out[i + 1] = byte(v, 1) == byte(ARGV[arg]) and 0 or v
	elseif byte(v, 58) ~= 2 then
		out[i + 1] = v
		if ACKED and byte(v, 58) == byte(ARGV[3]) then call('SET', KEYS[i], v, 'KEEPTTL') end
	else
		local b1, b2, b3, b4 = byte(v, 67, 70)
		local last = 70 + ((b1 * 256 + b2) * 256 + b3) * 256 + b4
		put(KEYS[i], ARGV[arg] .. sub(v, 26, 33) .. times .. sub(v, 67, last) .. ARGV[arg + 1], unpack_('>I8', v, 18), expires, linger)
		out[i + 1], done = 1, done + 1
	end
end
return done == n and {now, 1} or out
`

// ARGV: format + owner + fence. 1: renewed.
const luaRenew = luaStart + luaTimes + `
for i = 1, n do
	local head = call('GETRANGE', KEYS[i], 0, 57)
	if sub(head, 1, 25) == ARGV[i + 3] and byte(head, 58) == 2 then
		call('SETRANGE', KEYS[i], 33, times)
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

const luaNow = luaStart + `return out`

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

// newScripts are the scripts of a store with these options.
func newScripts(o *Options) *scripts {
	acked := strconv.FormatBool(o.acked())
	fill := strings.NewReplacer("CLOCK", o.clock, "LINGER", strconv.FormatInt(int64(o.Linger/time.Millisecond), 10), "ACKED", acked)
	of := func(text string, each int) script {
		terms := strings.Contains(text, luaTimes)
		text = fill.Replace(text)
		sum := sha1.Sum([]byte(text)) //nolint:gosec // it is how Redis names scripts
		return script{text, hex.EncodeToString(sum[:]), terms, each}
	}
	return &scripts{of(luaNow, 0), of(luaGet, 0), of(luaClaim, 2), of(luaSwap, 5), of(luaSettle, 2), of(luaRenew, 1), of(luaSweep, 0)}
}
