package nearcache

import (
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// entry is one record that is kept. All but the links and used is fixed once
// it is in a shard.
type entry struct {
	record store.Record
	hash   uint64
	cost   int64
	// asked and told are when the store was asked and when its answer came,
	// which said that its clock was clock.
	asked, told stamp
	clock       time.Time
	// life is how long after asked the record is handed out.
	life time.Duration
	// mine is the claim of a caller of this process: nothing to hand out yet.
	mine bool
	// reckoned: times of the record were counted here, and not by the store.
	reckoned bool

	used       bool
	next, prev *entry
}

// overhead is what an entry takes beside its texts, in bytes: itself, and its
// place in a map.
const overhead = 576

// keep makes an entry of a record. It shares no memory with what the store
// gave: that may be a small part of a large buffer.
func keep(r *store.Record) *entry {
	e := &entry{record: *r}
	c := &e.record
	o := &c.Outcome
	texts := [...]*string{
		&c.Key.Operation, &c.Key.Tenant, &c.Key.Value, &c.Holder, &c.Fingerprint.Alg, &c.Fingerprint.KeyID, &c.Fingerprint.Sum, &c.LastError, &o.Codec,
	}
	size := 0
	for _, t := range texts {
		size += len(*t)
	}
	o.Header = append([]store.Header(nil), o.Header...)
	for i := range o.Header {
		size += len(o.Header[i].Name) + len(o.Header[i].Value)
	}
	var b strings.Builder // all texts in one string: one thing to keep, and to collect
	b.Grow(size)
	move := func(t *string) {
		b.WriteString(*t)
		*t = b.String()[b.Len()-len(*t):]
	}
	for _, t := range texts {
		move(t)
	}
	for i := range o.Header {
		move(&o.Header[i].Name)
		move(&o.Header[i].Value)
	}
	o.Header = o.Header[:len(o.Header):len(o.Header)] // an append to what is handed out must not write
	if o.Body != nil {
		body := make([]byte, len(o.Body))
		copy(body, o.Body)
		o.Body = body
	}
	e.cost = overhead + int64(size+len(o.Body)+len(o.Header)*headerSize)
	return e
}

// headerSize is that of a store.Header: two strings.
const headerSize = 32
