// Package redisstore keeps records in Redis 7 or later. Use it where a key must
// be checked in microseconds, and where the durability of Redis is enough.
//
// Its tests run on Redis 7.0 and 8.0 and Valkey 8.1: one server, Sentinel and
// Cluster, each with and without TLS.
//
// [New] takes the application's go-redis client: of one server, of Sentinel or of
// a Cluster. [Open] takes a URL.
//
// # Access
//
// A rediss URL verifies the server's certificate by the roots of the system
// (on Linux SSL_CERT_FILE names others). For other roots, or a client
// certificate, pass [New] a client with a TLSConfig. A user of the server needs
// these rights, with Options.Prefix in place of semel:
//
//	ACL SETUSER app on >… ~semel:* +@connection +info +time +eval +evalsha +scan
//	  +get +getrange +mget +msetnx +set +setrange +del +sadd +srem +sscan
//	  +zadd +zrem +zrangebyscore +hget +hset +hdel +cluster|slots
//
// The last line is for timers (sagas) and for a Cluster. Add +wait for Options.Replicas,
// +waitaof for Options.Fsync, and +config|get for [Store.Check] to know appendfsync.
//
// # Promises
//
// Each change is one atomic step on the server (a script), by the server's
// clock (TIME), compared with owner, fence and state as package store asks,
// and it is on the server when the method returns nil. The server's settings
// decide how long it stays:
//
//	event                     loss
//	restart, no appendonly    all since the last snapshot; without one, all
//	kill -9, everysec         as a rule nothing, because the operating system
//	                          has the writes; up to two seconds while the disk
//	                          is slow
//	machine fails, everysec   the last second, or two
//	either, always            nothing
//	fail-over                 the changes that the new master had not received:
//	                          the last milliseconds; if replication had
//	                          stopped, all since then
//	fail-over, Replicas: n    changes that n replicas acknowledged and the new
//	                          master had not received: none if n is all of
//	                          them. WAIT is no consensus: a master that was cut
//	                          off with its replicas may still acknowledge
//	eviction                  any record, at any time; refused unless
//	                          Options.AllowEviction
//
// Each loss has this effect:
//
//	lost                      retry                    park
//	a claim in flight         the handler runs again,  the effect happens twice,
//	                          even beside the first,   which park forbids
//	                          whose settlement is
//	                          ErrLeaseLost
//	an outcome                the handler runs again;  the same
//	                          the second outcome
//	                          replaces the first
//	a parked record           -                        the doubt is forgotten
//	a renewal                 the lease lapses early   the key is parked early
//	the swept fence           a key that is used       the same
//	                          again may get a lower
//	                          fence if the clock is
//	                          set back
//
// So claims with policy park are refused unless Options.AllowPark says that
// you have read this. Use a database if that must not happen. There is no Atomic
// mode, because Redis has no transaction with the handler's writes.
//
// A server that evicts, or is a replica, is refused when it is opened, or by
// the first claim. While claims come, the settings are read again every 10 s and
// after each new connection, so that a changed setting, or a fail-over to such a
// server, is refused too, and so is a server that keeps less after a crash than when
// the store was opened. [Store.Check] (semel doctor) names other unsafe settings:
// persistence, fsync, replicas, min-replicas-to-write. Options.Replicas and
// Options.Fsync narrow the window. A claim that too few replicas acknowledge is
// refused with ErrNotAcknowledged, and holds its key until its lease ends: the
// store takes nothing back, because a command that arrives late could then delete
// a claim that is live by now. After the lease the key is taken over, or parked
// under policy park, as if its owner had died. A settlement stays, and is
// ErrUnconfirmed.
//
// With Options.Replicas or Options.Fsync, a completed or failed record answers a caller
// only after enough servers have acknowledged it, and Reserve gives out the token of a record
// only then. The store rewrites the record's first byte, unchanged, and waits for that write. In a claim that adds no round trip; a [Store.Get] of such a
// record, as of a waiting duplicate, takes a second one. If too few acknowledge it, the
// error is ErrUnconfirmed: a Guard reports ErrUnavailable, and HTTP 503. So duplicates of
// old calls are not answered either while the replicas are away. Package nearcache in front
// answers those that it has.
//
// A server that refuses writes still answers replays, unless these options are set: one
// without memory (maxmemory), replicas (min-replicas-to-write) or disk
// (stop-writes-on-bgsave-error).
//
// # The clock
//
// The server's clock decides about leases and expiry, and after a fail-over the
// clock of the new master. A jump loses no confirmed outcome within its
// retention, and a worker that loses its lease by a jump cannot write:
//
//	jump                    effect
//	forward past a lease    a running call is taken over, or parked, as if its
//	                        process had died: the next renewal cancels its
//	                        handler, and until then two may run; the first has
//	                        the lower fence and cannot settle
//	forward past retention  the outcome has expired, and the operation runs again
//	back by d               leases of dead processes, pauses after failed
//	                        attempts and retentions end d later; a running call
//	                        corrects its lease at its next renewal
//	back while changes wait the call ends with the client's ReadTimeout, as
//	for acknowledgements    without an answer; the same call sent again finds
//	                        its own claim
//
// Let the clock be slewed (chrony, ntpd), not stepped.
//
// # Records and expiry
//
// A record is one string. While it is in flight, or parked, Redis does not expire
// it, so that no doubt is forgotten; run a sweep, because otherwise records of
// dead processes stay. When it ends, Redis keeps it for its retention and
// Options.Linger. A sweep removes it before that and remembers its fence, so that
// the key gets a higher fence when it is used again, whatever the clock does. If
// Redis removes it first, its fence is remembered only if it was ahead of the
// clock: a clock that is set back by more than the retention and Linger may then
// give the key a lower fence.
//
// The steps of a call are in the same string. Recording one writes the whole record,
// and a duplicate reads it with its steps, so keep the results of steps small.
//
// The keys of the records in doubt are in a set too, which only a change into or out
// of doubt writes, so that List finds them without reading the others. Sweep, and List
// of other records, look at all keys of the server's database (SCAN), in small
// steps. Give the store a server, or a database, of its own if others keep
// many keys there.
//
// # Throughput
//
// Claims that arrive while a round trip is in flight share the next one. Claims
// with one lease and attempt number share a script. Settlements and reads do the
// same in queues of their own (see package coalesce). In a Cluster each record
// has its own script, and each node one pipeline. Renewals wait for none of
// these. A new operation takes two round trips, a replay one. A waiting duplicate
// polls, because a notification would cost every settlement a message that as a
// rule nobody reads.
//
// The queues use up to six connections of the client's pool (in a Cluster, of the
// pool of each node), and renewals one.
//
// # Cluster
//
// A record and the highest fence that was swept in its slot are in one slot.
// While a slot moves, reads, renewals and steps go on. (With Options.Replicas or
// Options.Fsync this needs a target that has another slot already.) Other changes, and all calls for the
// timers of sagas, may be refused until it has moved. A sweep leaves its records to a later
// pass, and a list of all records ends with an error; the list of the records in doubt has
// them. A move that was broken off lasts until somebody ends it (redis-cli --cluster fix).
// Before you move from one server to a Cluster, let all records end, because the swept fence
// does not move with them.
//
// While a node is down, or hangs, a sweep and a list go on with the other nodes, and end
// with its error.
package redisstore
