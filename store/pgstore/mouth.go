package pgstore

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// mouth says what has ended to all who listen, after it was committed and
// beside it: a transaction that notifies holds a lock of the whole server until
// its commit is on the disk, so in that of the settlement all would commit one
// after the other. One that only notifies does not wait for the disk.
type mouth struct {
	pool    *pgxpool.Pool
	channel string
	wake    chan struct{}
	done    chan struct{}

	mu    sync.Mutex
	ended []byte // ids
}

const (
	notify = `SELECT pg_notify($1::text, $2::text)`
	idSize = 16
	// spoken is how many ids a notification has: less than 8000 bytes.
	spoken = 240
	// unspoken is how many wait to be said; more are not, for the server hangs.
	unspoken = 1 << 16
	// breath is between two notifications, for the ends of which one is enough.
	breath = 4 * time.Millisecond
	// speech is how long all that waits to be said may take.
	speech = 5 * time.Second
)

// newMouth says what it is told until ctx is over.
func newMouth(ctx context.Context, pool *pgxpool.Pool, channel string) *mouth {
	m := &mouth{pool: pool, channel: channel, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go m.run(ctx)
	return m
}

// say has an end said soon. If that fails nobody is told: who waits polls.
func (m *mouth) say(id pgtype.UUID) {
	m.mu.Lock()
	if len(m.ended) < unspoken*idSize {
		m.ended = append(m.ended, id.Bytes[:]...)
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mouth) run(ctx context.Context) {
	defer close(m.done)
	for {
		select {
		case <-m.wake:
			m.speak(ctx)
		case <-ctx.Done():
			m.speak(ctx)
			return
		}
		<-time.After(breath)
	}
}

// speak says what is there, also when ctx is over: that is the end of the store.
func (m *mouth) speak(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), speech)
	defer cancel()
	m.mu.Lock()
	ids := m.ended
	m.ended = nil
	m.mu.Unlock()
	for len(ids) > 0 {
		n := min(len(ids), spoken*idSize)
		if _, err := m.pool.Exec(ctx, notify, m.channel, hex.EncodeToString(ids[:n])); err != nil {
			return
		}
		ids = ids[n:]
	}
}
