// Package shardstore makes one store of several independent ones. Each key
// lives on one of them, which its hash and the names of the stores decide:
//
//	st, err := shardstore.New([]shardstore.Shard{
//		{Name: "redis-1", Store: one},
//		{Name: "redis-2", Store: two},
//	})
//
// A key is promised what its shard promises, and no more: shards are no
// replicas of each other. While a shard is down its keys fail, and only they;
// errors name it.
//
// # Who has which key
//
// By rendezvous hashing: of all shards the one whose name, hashed with the key,
// gives the highest number. It depends on nothing else: not on the order in
// which the shards are given, and not on their addresses, so a server can be
// replaced, with its data, under its old name. Every process must be given the
// same names; two that were not grant a key twice.
//
// # When the set of names changes
//
// One more shard among n takes over one key in n+1, all others stay; when one
// is taken away, its keys spread over the others. A name that is changed is one
// taken away and one added. Records do not move. So a key that moves has lost
// its record, and its protection:
//
//   - a duplicate of a moved key runs again
//   - a moved key that is in flight can be claimed a second time
//   - a moved key that is parked as unknown is free
//   - its fence may go back, by what the shards' clocks differ
//
// What an operator does about it: stop every process that has the old set;
// settle what is in flight and resolve what is parked; wait for as long as
// duplicates can still come, which is at most the retention, or accept that
// those of the moved keys run again; start with the new set. Store.On tells
// which shard has a key, without asking it: so one can see beforehand what
// moves. New operations, or new tenants, can be given a set of their own
// without any of this. Check reports records that are on a shard which is not
// theirs.
//
// # Clocks
//
// Each shard has a clock of its own, which judges the leases and retentions of
// its keys; Found.Now is that of the record's shard. No two are compared. So
// they may differ, but for those who compare records of different keys:
// List with Filter.Idle looks at each record by its own shard's clock.
package shardstore
