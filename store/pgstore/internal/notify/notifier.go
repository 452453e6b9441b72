package notify

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// notifier sends the keys of runs that have ended to all listeners. It does so
// after the commit, in a transaction of its own: a transaction that notifies holds a
// lock of the whole server until its commit is on the disk, so if the settlements
// notified, they would commit one after the other. A transaction that only notifies
// does not wait for the disk.
type notifier struct {
	pool    *pgxpool.Pool
	channel string
	wake    chan struct{}
	done    chan struct{}

	mu    sync.Mutex
	ended []byte // ids
}

const (
	notifySQL = `SELECT pg_notify($1::text, $2::text)`
	idSize    = 16
	// perNotification is how many ids a notification has: less than 8000 bytes.
	perNotification = 240
	// maxQueued is how many ids are queued. More are dropped, because the server
	// hangs then.
	maxQueued = 1 << 16
	// notifyPause is between two notifications, so that one holds many ids.
	notifyPause = 4 * time.Millisecond
	// notifyTimeout limits the sending of all that is queued.
	notifyTimeout = 5 * time.Second
)

// newNotifier starts a notifier that sends until ctx ends.
func newNotifier(ctx context.Context, pool *pgxpool.Pool, channel string) *notifier {
	n := &notifier{pool: pool, channel: channel, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go n.run(ctx)
	return n
}

// add queues an id. If it cannot be sent, the waiters for it poll.
func (n *notifier) add(id pgtype.UUID) {
	n.mu.Lock()
	if len(n.ended) < maxQueued*idSize {
		n.ended = append(n.ended, id.Bytes[:]...)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *notifier) run(ctx context.Context) {
	defer close(n.done)
	for {
		select {
		case <-n.wake:
			n.notify(ctx)
		case <-ctx.Done():
			n.notify(ctx)
			return
		}
		<-time.After(notifyPause)
	}
}

// notify sends what is queued, also if ctx has ended, because the store closes then.
func (n *notifier) notify(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	n.mu.Lock()
	ids := n.ended
	n.ended = nil
	n.mu.Unlock()
	for len(ids) > 0 {
		size := min(len(ids), perNotification*idSize)
		if _, err := n.pool.Exec(ctx, notifySQL, n.channel, hex.EncodeToString(ids[:size])); err != nil {
			return
		}
		ids = ids[size:]
	}
}
