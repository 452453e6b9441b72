// Package redisstore keeps records in Redis (7 and later): the fast store, for events and calls where a look at a key must cost microseconds,
// and where the promise may be Redis's.
//
// Its tests run on Redis 7.0 and 8.0 and Valkey 8.1: one server, Sentinel and
// Cluster, each with and without TLS.
//
// [New] takes the client that the application has (go-redis): of one server,
// of a Sentinel fail-over, or of a Cluster. [Open] takes a URL.
//
// # Access
//
// A rediss URL verifies the server's certificate by the roots of the system
// (on Linux SSL_CERT_FILE names others); for others, or a certificate of the
// client, give [New] a client with a TLSConfig. These rights are enough for the
// user of a server, with the prefix in use for semel:
//
//	ACL SETUSER app on >… ~semel:* +@connection +info +time +eval +evalsha +scan
//	  +get +getrange +mget +msetnx +set +setrange +del
//
// and +wait for Options.Replicas, +waitaof for Options.Fsync, +config|get for
// [Store.Check] to know appendfsync.
//
// # Promises
//
// Each change is one atomic step on the server (a script), by the server's
// clock (TIME), compared with owner, fence and state as package store asks,
// and it is on the server when the method returns nil. What becomes of it then
// is up to the server:
//
//	what happens              what is lost
//	restart, no appendonly    all since the last snapshot; without one, all
//	kill -9, everysec         as a rule nothing: what was written is with the
//	                          system; up to two seconds while the disk is slow
//	machine fails, everysec   the last second, or two
//	either, always            nothing
//	fail-over                 what the new master had not got yet: the last
//	                          milliseconds; after a cut of the replication, all
//	                          since then
//	fail-over, Replicas: n    what n replicas acknowledged and the promoted one
//	                          had not got: nothing where n is all of them. WAIT
//	                          is no consensus: a master that was cut off with
//	                          its replicas may still acknowledge
//	eviction                  any record, at any time; refused unless
//	                          Options.AllowEviction
//
// What that means for each guarantee:
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
//	a swept fence             a key that comes back    the same
//	                          may get a lower one if
//	                          the clock is set back
//
// So claims with policy park are refused unless Options.AllowPark says that
// you have read this. Use a database where that must not be. Atomic cannot be
// had: there is no transaction with the handler's writes.
//
// A server that evicts, or is a replica, is refused when it is opened, or by
// the first claim. [Store.Check] (semel doctor) names what else is unsafe:
// persistence, fsync, replicas, min-replicas-to-write. Options.Replicas and
// Options.Fsync narrow the window. A claim that too few replicas acknowledge is
// refused with ErrNotAcknowledged, and holds its key until its lease ends: the
// store takes nothing back, because a command that arrives late could then delete
// a claim that is live by now. After the lease the key is taken over, or parked
// under policy park, as if its owner had died. A settlement stays, and is
// ErrUnconfirmed.
//
// A server that takes no writes for now goes on with replays: one without memory
// (maxmemory), replicas (min-replicas-to-write) or disk
// (stop-writes-on-bgsave-error).
//
// # The clock
//
// All is judged by the server's clock, and by that of the new master after a
// fail-over. A jump of it costs no confirmed outcome before its retention is
// over, and grants nothing that the fence does not tell:
//
//	it jumps                what it costs
//	forward past a lease    who lives is taken over, or parked, as if it had
//	                        died: its handler is cancelled by the next renewal,
//	                        and until then two may run; the first, which has the
//	                        lower fence, cannot settle
//	forward past retention  the outcome is over, and its key runs again
//	back by d               what its owner left is held for d longer, as are the
//	                        pause after a failed attempt, even one of nothing,
//	                        and retentions; leases of who lives end in their
//	                        time again with the next renewal
//	back while changes wait the call ends with the client's ReadTimeout, like
//	for acknowledgements    any without an answer; sent again it finds itself
//
// Let the clock be slewed (chrony, ntpd), not stepped.
//
// # What is kept
//
// A record is one string. While it is in flight, or parked, it has no expiry
// of Redis, so that a doubt is never forgotten; run a sweep, or what dies in
// flight stays. When it ends it is kept for its retention, and Options.Linger
// more. A sweep removes it before that and keeps its fence, so that a key
// which comes back gets a higher one, whatever the clock does. Where Redis
// removes it first, its fence is kept only if it was ahead of the clock: a
// clock that is set back by more than the retention and Linger may then give
// the key a lower fence.
//
// Sweep and List look at all keys of the server's database (SCAN), in small
// steps. Give the store a server, or a database, of its own if others keep
// many keys there.
//
// # Throughput
//
// Claims that come while a round trip is in flight go together in the next
// one, as one script for those of one lease and attempt; so do settlements of
// one retention and attempt, and reads, in lanes of their own. In a Cluster each
// record is a script of its own, in one pipeline a node.
// Renewals are not held up by either. A new operation takes two round trips, a
// replay one. A waiting duplicate polls, in the reads' lane: a notification
// would cost every settlement a message that as a rule nobody waits for.
//
// The lanes take up to six connections of the client's pool (in a Cluster of
// that of each node), renewals one.
//
// # Cluster
//
// A record has one slot, with the floor of the fences that were swept there.
// While a slot moves, its records may be refused for a moment; with
// Options.Replicas, until it has moved. To move records from one server to a
// Cluster, let them end first: the floor of a single server stays behind.
package redisstore
