// Package shardstore makes one store of several independent ones. Each key
// lives on one of them, which its hash and the names of the stores decide:
//
//	st, err := shardstore.New([]shardstore.Shard{
//		{Name: "redis-1", Store: one},
//		{Name: "redis-2", Store: two},
//	})
//
// Each key has the guarantees of its shard; shards do not replicate each other.
// While a shard is down only its keys fail, and errors name the shard. Sweep, List and
// DueTimers need all shards. They give a shard that hangs half of the time that is left
// before the deadline of their context, so give them one: without a deadline they wait.
//
// # Which shard has a key
//
// Rendezvous hashing decides: the shard whose name, hashed with the key, gives
// the highest number. The order of the shards and their addresses do not matter,
// so a server can be replaced, with its data, under its old name. Give every
// process the same names; processes with different names grant a key twice.
//
// # When the set of names changes
//
// A shard that is added to n others gets one key in n+1; the other keys stay. The keys of a shard that is removed spread over the others. A new name for
// a shard removes one and adds one. Records do not move, so a key that moves
// loses its record and its protection:
//
//   - a duplicate of a moved key runs the operation again
//   - a moved key that is in flight can be claimed a second time
//   - a moved key that is parked as unknown is free
//   - its fence may be lower, if the new shard's clock is behind
//
// To change the set safely: stop every process with the old set; let calls in
// flight end and resolve parked ones; wait until no duplicates can come, which is
// at most the retention, or accept that duplicates of moved keys run again; start
// with the new set. Store.On returns the shard of a key without I/O, so you can
// see in advance which keys move. New operations or tenants can use a new set
// without these steps. Check reports records on the wrong shard.
//
// # Clocks
//
// Each shard's clock decides about the leases and retentions of its keys, and
// Found.Now is the clock of the record's shard. The clocks may differ, because the
// store never compares two of them: List with Filter.Idle uses for each record the
// clock of its shard.
package shardstore
