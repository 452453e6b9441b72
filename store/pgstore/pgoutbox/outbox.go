package pgoutbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Options configures an Outbox. Nil and zero fields mean the defaults.
type Options struct {
	// NoListen turns off the connection on which a publisher waits for notifications
	// (LISTEN). Set it if the connections go through a pooler in transaction mode, such as
	// PgBouncer. The publisher then finds messages by polling alone.
	NoListen bool
}

// Outbox writes and publishes messages in the tables of a store. Make it with [New], and
// close it before the store. Safe for concurrent use.
type Outbox struct {
	db       *pgwire.Database
	sql      *statements
	options  Options
	channel  string
	notified atomic.Int64 // when Put has notified last, in nanoseconds since start
	start    time.Time

	mu       sync.Mutex
	closed   bool
	listener *listener
}

var (
	_ outbox.Store     = (*Outbox)(nil)
	_ outbox.Inspector = (*Outbox)(nil)
)

// New makes an outbox in the tables of a store. Nil options mean the defaults. It does no
// I/O.
func New(st *pgstore.Store, o *Options) (*Outbox, error) {
	if st == nil {
		return nil, errors.New("pgoutbox: New: the store is nil")
	}
	b := &Outbox{db: pgwire.DatabaseOf(st), start: time.Now()}
	if o != nil {
		b.options = *o
	}
	b.sql = statementsOf(b.db)
	sum := sha256.Sum256([]byte(b.db.Schema))
	b.channel = "semel_outbox_" + hex.EncodeToString(sum[:16])
	b.notified.Store(-int64(notifyEvery))
	return b, nil
}

// Close ends the connection that waits for notifications. Put goes on to work.
func (b *Outbox) Close() error {
	b.mu.Lock()
	l := b.listener
	b.closed, b.listener = true, nil
	b.mu.Unlock()
	if l != nil {
		l.close()
	}
	return nil
}

// notifyEvery is the shortest time between two notifications of a process. Publishers
// look for messages often for a longer time than that after each message.
const notifyEvery = 50 * time.Millisecond

// mayNotify reports whether the transaction of a Put is to notify publishers.
func (b *Outbox) mayNotify() bool {
	now, last := int64(time.Since(b.start)), b.notified.Load()
	return now-last >= int64(notifyEvery) && b.notified.CompareAndSwap(last, now)
}

// Put writes messages in a transaction, in one round trip. They are published after the
// transaction has committed. If ctx is that of a handler, the messages belong to its call:
// see outbox.Entry.Call.
func (b *Outbox) Put(ctx context.Context, tx pgx.Tx, messages ...outbox.Message) error {
	steps, err := b.put(ctx, messages)
	if err != nil || len(steps) == 0 {
		return err
	}
	var batch pgx.Batch
	for _, s := range steps {
		batch.Queue(s.sql, s.args...)
	}
	return explain("put", tx.SendBatch(ctx, &batch).Close())
}

// PutSQL is Put in a transaction of database/sql. It takes a round trip for each message
// and two more.
func (b *Outbox) PutSQL(ctx context.Context, tx *sql.Tx, messages ...outbox.Message) error {
	steps, err := b.put(ctx, messages)
	for _, s := range steps {
		if err == nil {
			_, err = tx.ExecContext(ctx, s.sql, s.args...)
		}
	}
	return explain("put", err)
}

type step struct {
	sql  string
	args []any
}

// put is the statements that write messages: the locks of the order keys first, and then
// the rows, so that a position is taken while its key is locked.
func (b *Outbox) put(ctx context.Context, messages []outbox.Message) ([]step, error) {
	call := outbox.CallOf(ctx)
	var locks []int64
	var rows []step
	for i := range messages {
		m, err := messages[i].Prepare()
		if err != nil {
			return nil, err
		}
		headers, err := store.EncodeHeader(m.Headers)
		if err != nil {
			return nil, err
		}
		order := m.Order()
		if m.OrderKey != "" && !slices.Contains(locks, order) {
			locks = append(locks, order)
		}
		body := m.Body
		if body == nil {
			body = []byte{}
		}
		rows = append(rows, step{b.sql.put, []any{order, outbox.LaneOf(order), m.Topic, m.OrderKey, m.ID, call, string(headers), body}})
	}
	if len(rows) == 0 {
		return nil, nil
	}
	var steps []step
	if len(locks) > 0 {
		slices.Sort(locks) // so that transactions with the same keys do not meet a deadlock
		texts := make([]string, len(locks))
		for i, n := range locks {
			texts[i] = strconv.FormatInt(n, 10)
		}
		steps = append(steps, step{lockKeys, []any{strings.Join(texts, ",")}})
	}
	steps = append(steps, rows...)
	if b.mayNotify() {
		steps = append(steps, step{notifySQL, []any{b.channel}})
	}
	return steps, nil
}

// explain is pgwire.Explain with the name of this package.
func explain(what string, err error) error {
	if err == nil || errors.Is(err, outbox.ErrNotFound) || errors.Is(err, outbox.ErrState) {
		return err
	}
	return pgwire.Explain("outbox: "+what, err)
}
