package pgwire

import (
	"sync/atomic"
	"time"
)

// LockedRows remembers when the server last found the row of a key locked. A call whose
// time ends before its turn asks it: a row that is locked is no outage of the server. Keys
// whose hashes are equal modulo the length share a place. The zero value is ready. Safe for
// concurrent use.
type LockedRows struct {
	at [256]atomic.Pointer[time.Time]
}

// Found records that the row of a key is locked.
func (l *LockedRows) Found(hash uint64) {
	now := time.Now()
	l.at[hash%uint64(len(l.at))].Store(&now)
}

// Since reports whether the row of a key was found locked after a time.
func (l *LockedRows) Since(hash uint64, start time.Time) bool {
	at := l.at[hash%uint64(len(l.at))].Load()
	return at != nil && at.After(start)
}
