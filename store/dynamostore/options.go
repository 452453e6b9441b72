package dynamostore

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Options configures a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Prefix is the prefix of each record's partition key: "semel#" by default. It has up
	// to 100 bytes, and does not start with "timer:". Stores with different prefixes share
	// a table, also with other data, and see nothing of each other; one prefix may be the
	// start of another.
	Prefix string
	// PartitionKey and SortKey are the names of the table's key attributes, both
	// strings. The defaults are "pk" and no sort key. With a sort key, each
	// record has the sort key "semel".
	PartitionKey, SortKey string
	// TTL is the attribute of DynamoDB's time to live, in seconds: "ttl" by
	// default.
	TTL string
	// Index is the name of the global secondary index of records in flight and in
	// doubt: "semel-due" by default. Its keys are the attributes "due" (string)
	// and "dueat" (number), which only these records have.
	Index string
	// IndexShards is how many partition keys the index has for each kind of
	// record: 8 by default. One takes about 500 new calls a second. All
	// processes need the same number; raise it, but do not lower it while
	// records are in flight or in doubt.
	IndexShards int
	// MaxSkew is the most by which the clocks of two processes differ: 2 s by
	// default. A lease counts as lapsed MaxSkew after its end. A process whose
	// clock differs from DynamoDB's by more than half of it gets ErrClock.
	MaxSkew time.Duration
	// SweepExpired has Sweep delete expired records, for which it reads the whole
	// table. Without it only DynamoDB's time to live deletes them.
	SweepExpired bool

	// Objects keeps outcomes of more than 32,000 bytes after compression, for example
	// in S3. Each is written before the record that needs it. If it cannot be written,
	// the Guard records a tombstone; in a transaction nothing is written. If it is
	// missing when it is read, or if the store has no Objects, it reads as a tombstone;
	// if Objects fails, the call is an error and can be made again. Only Erase deletes
	// objects, and only of an ObjectDeleter: have the others expire, at the earliest
	// when the record does. Without Objects an outcome above the 400 KB of an item is a
	// tombstone.
	Objects Objects

	inline int              // for tests: maxInline
	now    func() time.Time // for tests; without it time.Now, compared with the server's
	noSkew bool             // for tests: MaxSkew is zero
}

const maxSkew = time.Hour // the most that Options.MaxSkew may be

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.Prefix = cmp.Or(d.Prefix, "semel#")
	d.PartitionKey = cmp.Or(d.PartitionKey, "pk")
	d.TTL = cmp.Or(d.TTL, "ttl")
	d.Index = cmp.Or(d.Index, "semel-due")
	d.IndexShards = cmp.Or(d.IndexShards, 8)
	d.inline = cmp.Or(d.inline, maxInline)
	if !d.noSkew {
		d.MaxSkew = cmp.Or(d.MaxSkew, 2*time.Second)
	}
	used := map[string]string{}
	for _, n := range recordAttributes {
		used[n] = "an attribute of the records"
	}
	for _, n := range []struct{ option, name string }{{"PartitionKey", d.PartitionKey}, {"SortKey", d.SortKey}, {"TTL", d.TTL}} {
		if use := used[n.name]; use != "" && n.name != "" {
			return d, fmt.Errorf("dynamostore: Options.%s is %q, which is also %s; use another name", n.option, n.name, use)
		}
		used[n.name] = "Options." + n.option
	}
	switch {
	case len(d.Prefix) > 100:
		return d, fmt.Errorf("dynamostore: Options.Prefix has %d bytes; the limit is 100", len(d.Prefix))
	case strings.HasPrefix(d.Prefix, timerPrefix): // its records would have the keys of another store's timers
		return d, fmt.Errorf("dynamostore: Options.Prefix is %q; it must not begin with %q, as the partition keys of timers do", d.Prefix, timerPrefix)
	case d.IndexShards < 1 || d.IndexShards > 1000:
		return d, fmt.Errorf("dynamostore: Options.IndexShards is %d; it must be 1 to 1000", d.IndexShards)
	case d.MaxSkew < 0 || d.MaxSkew > maxSkew:
		return d, fmt.Errorf("dynamostore: Options.MaxSkew is %v; it must be 1ns to %v", d.MaxSkew, maxSkew)
	}
	return d, nil
}
