package redisstore

import (
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// script is one atomic step on the server, for one record or many. KEYS holds
// the Redis key of each record, then that of the swept fence, if the script uses it, and if
// the script may change which records are in doubt, that of their set. (See luaTimer for the
// scripts of timers.) ARGV holds the stateChange, which all records share, if the script
// has one, and then the arguments of each record. The answer is the clock, and then one part for each record, or one
// part for all. In a cluster a script has one record, because it must keep to one
// slot. While that slot moves, a script with one key is served, and one with more only if all
// of them exist and are on one node.
//
// Lua hashes each byte of each string that it makes, so the number and the length
// of strings decide the cost of a script.
//
// Lua counts from 1, so an offset of row.go is one more here.
type script struct {
	text, sha      string
	hasStateChange bool // ARGV begins with a stateChange
	hasSweptFence  bool // KEYS has the swept fence
	hasInDoubtSet  bool // KEYS always ends with the set of the records in doubt
	hasVersions    bool // KEYS has the hash of each set of timers
}

type scriptSet struct {
	now, get, claim, swap, settle, renew, sweep, step, erase script
	receive, confirm                                         script
	setTimer, dropTimer, dueTimers                           script
}

// Numbers are exact up to 2^53: in microseconds, the year 2255.
const luaStart = `
local KEYS, ARGV = KEYS, ARGV
local call, sub, byte, pack, unpack_ = redis.call, string.sub, string.byte, struct.pack, struct.unpack
local n, now = #KEYS - SHARED, CLOCK
local out = {now}
`

// luaTimes reads the stateChange: until and expires, in microseconds from now or empty
// for none; then state and attempt. The variable times is the part of the record
// from until to attempt, and linger how long Redis keeps the record, in
// milliseconds. If doubts is true, the change makes the records unknown, and the
// last of KEYS is the set of such records.
const luaTimes = `
local ends, expires = tonumber(ARGV[1]), tonumber(ARGV[2])
local linger = expires and string.format('%.0f', math.max(1, math.ceil(expires / 1000) + LINGER))
ends, expires = ends and now + ends or 0, expires and now + expires or 0
local times = pack('>i8i8i8', ends, expires, now) .. ARGV[3]
local doubts = byte(ARGV[3]) == UNKNOWN
if doubts then n = n - 1 end
`

// put stores a record with an expiry of Redis if the record expires; a claim
// has none, and outlives its lease. If Redis will remove the record before the
// clock reaches its fence, put also raises the swept fence.
const luaPut = `
local function raise_swept_fence(fence)
	local swept = call('GET', KEYS[n + 1])
	if not swept or tonumber(swept) < fence then call('SET', KEYS[n + 1], string.format('%.0f', fence)) end
end
local function put(name, v, fence, expires, linger)
	if not linger then
		call('SET', name, v)
		return
	end
	call('SET', name, v, 'PX', linger)
	if fence > expires + LINGER * 1000 then raise_swept_fence(fence) end
end
`

// luaSteps finds the first and the last byte of a record's steps; none: the last is
// before the first.
const luaSteps = `
local function length(v, at)
	local b1, b2, b3, b4 = byte(v, at, at + 3)
	return ((b1 * 256 + b2) * 256 + b3) * 256 + b4
end
local function steps_of(v)
	local first = 75 + length(v, 67)
	return first, first - 1 + length(v, first - 4)
end
`

// luaIsAnswer is Record.IsAnswer.
const luaIsAnswer = `
local function is_answer(v)
	local state = byte(v, 58)
	local later_claim = state == PROCESSING and sub(v, 18, 25) ~= sub(v, 26, 33)
	return state == COMPLETED or state == FAILED or state == STARTED or state == UNKNOWN or later_claim
end
`

// luaClaim. ARGV of a record: format + owner; all after the attempt. The answer
// for a record is the fence that it was inserted with, or the record that is
// there. If all are new, and do not expire, one MSETNX inserts them. A server
// that refuses writes fails that MSETNX even if the records exist, so that its
// error is ignored and the records are read. One write confirms all records that need
// it (see luaConfirm).
const luaClaim = luaStart + luaTimes + luaIsAnswer + `
local fence = now
local swept = call('GET', KEYS[n + 1])
if swept and tonumber(swept) >= now then fence = tonumber(swept) + 1 end
local both, all = pack('>i8i8', fence, now) .. times, {}
for i = 1, n do
	all[2 * i - 1] = KEYS[i]
	all[2 * i] = ARGV[2 * i + 2] .. both .. ARGV[2 * i + 3]
end
if not linger and not doubts then
	local new = redis.pcall('MSETNX', unpack(all))
	if new == 1 then return {now, fence} end
	if new ~= 0 and not ({OOM = 1, MISCONF = 1, NOREPLICAS = 1})[string.match(new.err, '%u+')] then return new end
end
local seen, again = call('MGET', unpack(KEYS, 1, n)), nil
for i = 1, n do
	local old = seen[i]
	if not old and linger then
		old = call('SET', KEYS[i], all[2 * i], 'NX', 'GET', 'PX', linger)
	elseif not old then
		old = call('SET', KEYS[i], all[2 * i], 'NX', 'GET')
		if doubts and not old then call('SADD', KEYS[n + 2], KEYS[i]) end
	elseif ACKED and (is_answer(old) or sub(old, 1, 17) == ARGV[2 * i + 2] and byte(old, 58) == byte(ARGV[3])) then
		again = i
	end
	out[i + 1] = old or fence
end
if again then call('SETRANGE', KEYS[again], 0, sub(seen[again], 1, 1)) end
return out
`

// luaSwap. ARGV of a record: format + owner; all after the attempt; format +
// owner + fence as seen; until + expires + state as seen; restart. The answer is
// the new fence and the time of creation if the record was replaced, or the
// record that is there, or false if there is none. The last of KEYS is always the set
// of the records in doubt, because the change may end a doubt.
const luaSwap = luaStart + luaTimes + luaPut + luaSteps + luaIsAnswer + `
if not doubts then n = n - 1 end
for i = 1, n do
	local arg = 5 * i - 1
	local v = call('GET', KEYS[i])
	if not v then
		out[i + 1] = false
	elseif #v < 70 or sub(v, 1, 25) ~= ARGV[arg + 2] or sub(v, 34, 49) .. sub(v, 58, 58) ~= ARGV[arg + 3] then
		out[i + 1] = v
		if ACKED and (is_answer(v) or sub(v, 1, 17) == ARGV[arg] and byte(v, 58) == byte(ARGV[3])) then
			call('SETRANGE', KEYS[i], 0, sub(v, 1, 1))
		end
	else
		local fence = math.max(now, unpack_('>I8', v, 18) + 1)
		local created = ARGV[arg + 4] == '1' and now or unpack_('>i8', v, 26)
		local rest, first, last = ARGV[arg + 1], steps_of(v)
		if last >= first and ARGV[arg + 4] ~= '1' then
			local at = 4 + length(rest, 1)
			rest = sub(rest, 1, at) .. sub(v, first - 4, last) .. sub(rest, at + 5)
		end
		if doubts then
			call('SADD', KEYS[n + 2], KEYS[i])
		elseif byte(v, 58) == UNKNOWN then
			call('SREM', KEYS[n + 2], KEYS[i])
		end
		put(KEYS[i], ARGV[arg] .. pack('>i8i8', fence, created) .. times .. rest, fence, expires, linger)
		out[i + 1] = {fence, created}
	end
end
return out
`

// luaSettle. ARGV of a record: format + owner + fence; the result. The answer is
// 1 if it is settled, 0 if another owner holds it or there is none, or the record
// that is there, which may have been settled before.
const luaSettle = luaStart + luaTimes + luaPut + luaSteps + `
local seen, done = call('MGET', unpack(KEYS, 1, n)), 0
for i = 1, n do
	local arg, v = 2 * i + 2, seen[i]
	if not v then
		out[i + 1] = 0
	elseif sub(v, 1, 25) ~= ARGV[arg] then
		out[i + 1] = byte(v, 1) == byte(ARGV[arg]) and 0 or v
	elseif byte(v, 58) ~= PROCESSING then
		out[i + 1] = v
		if ACKED and byte(v, 58) == byte(ARGV[3]) then call('SET', KEYS[i], v, 'KEEPTTL') end
	else
		local _, last = steps_of(v)
		if doubts then call('SADD', KEYS[n + 2], KEYS[i]) end
		put(KEYS[i], ARGV[arg] .. sub(v, 26, 33) .. times .. sub(v, 67, last) .. ARGV[arg + 1], unpack_('>I8', v, 18), expires, linger)
		out[i + 1], done = 1, done + 1
	end
end
return done == n and {now, 1} or out
`

// luaRenew. ARGV of a record: format + owner + fence. The answer is 1 if the
// lease was renewed, or 0.
const luaRenew = luaStart + luaTimes + `
for i = 1, n do
	local head = call('GETRANGE', KEYS[i], 0, 57)
	if sub(head, 1, 25) == ARGV[i + 3] and byte(head, 58) == PROCESSING then
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

// luaSweep answers 1 for a record that had expired and is now deleted, the record
// if it has lapsed, or 0. It deletes before it writes, because a server without
// memory allows writes only after that.
const luaSweep = luaStart + luaPut + `
for i = 1, n do
	local head = call('GETRANGE', KEYS[i], 0, 57)
	out[i + 1] = 0
	if #head == 58 and byte(head, 1) == 1 then
		local state, expires = byte(head, 58), unpack_('>i8', head, 42)
		if (state == RELEASED or state == COMPLETED or state == FAILED) and expires ~= 0 and expires <= now then
			call('DEL', KEYS[i])
			raise_swept_fence(unpack_('>I8', head, 18))
			out[i + 1] = 1
		elseif (state == STARTED or state == PROCESSING) and unpack_('>i8', head, 34) <= now then
			out[i + 1] = call('GET', KEYS[i])
		end
	end
end
return out
`

// luaErase. ARGV of a record: format + owner + fence as seen; until + expires + state as
// seen. The answer is 1 if the record was deleted, 0 if there is none, or 2 if it is
// another by now. If there is none, a write of the swept fence, unchanged, waits for the
// replicas as the erasure did, because this may be its second sending.
const luaErase = luaStart + luaPut + `
for i = 1, n do
	local head = call('GETRANGE', KEYS[i], 0, 57)
	if head == '' then
		local swept = call('GET', KEYS[n + 1])
		if ACKED and swept then call('SETRANGE', KEYS[n + 1], 0, sub(swept, 1, 1)) end
		out[i + 1] = 0
	elseif sub(head, 1, 25) ~= ARGV[2 * i - 1] or sub(head, 34, 49) .. sub(head, 58, 58) ~= ARGV[2 * i] then
		out[i + 1] = 2
	else
		call('DEL', KEYS[i])
		raise_swept_fence(unpack_('>I8', head, 18))
		out[i + 1] = 1
	end
end
return out
`

// newScripts returns the scripts of a store with these options.
func newScripts(o *Options) *scriptSet {
	acked := strconv.FormatBool(o.waitsForAcks())
	words := []string{"CLOCK", o.clock, "LINGER", strconv.FormatInt(int64(o.Linger/time.Millisecond), 10), "ACKED", acked}
	for _, state := range []store.State{store.Started, store.Processing, store.Released, store.Completed, store.Failed, store.Unknown} {
		words = append(words, strings.ToUpper(state.String()), strconv.Itoa(int(state)))
	}
	fill := strings.NewReplacer(words...)
	complete := func(sc script) script {
		shared := "0"
		if sc.hasSweptFence {
			shared = "1"
		}
		sc.text = strings.Replace(fill.Replace(sc.text), "SHARED", shared, 1)
		sum := sha1.Sum([]byte(sc.text)) //nolint:gosec // it is how Redis names scripts
		sc.sha = hex.EncodeToString(sum[:])
		return sc
	}
	return &scriptSet{
		now:       complete(script{text: luaNow}),
		get:       complete(script{text: luaGet}),
		claim:     complete(script{text: luaClaim, hasStateChange: true, hasSweptFence: true}),
		swap:      complete(script{text: luaSwap, hasStateChange: true, hasSweptFence: true, hasInDoubtSet: true}),
		settle:    complete(script{text: luaSettle, hasStateChange: true, hasSweptFence: true}),
		renew:     complete(script{text: luaRenew, hasStateChange: true}),
		sweep:     complete(script{text: luaSweep, hasSweptFence: true}),
		step:      complete(script{text: luaStep}),
		erase:     complete(script{text: luaErase, hasSweptFence: true}),
		receive:   complete(script{text: luaReceive, hasSweptFence: true, hasInDoubtSet: true}),
		confirm:   complete(script{text: luaConfirm}),
		setTimer:  complete(script{text: luaSetTimer, hasVersions: true}),
		dropTimer: complete(script{text: luaDropTimer, hasVersions: true}),
		dueTimers: complete(script{text: luaDueTimers, hasVersions: true}),
	}
}
