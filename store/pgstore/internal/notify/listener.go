package notify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Listener waits for notifications of ended runs on a connection of its own, and
// wakes the callers that wait for these runs. If the connection breaks, it connects
// again. Its notifier sends what ended in this process.
type Listener struct {
	pool     *pgxpool.Pool
	notifier *notifier
	channel  string
	echo     time.Duration
	stop     context.CancelFunc
	done     chan struct{}

	mu        sync.Mutex
	listening bool
	waiters   map[pgtype.UUID]*Waiter
}

// Waiter is what all callers share that wait for one key.
type Waiter struct {
	id    pgtype.UUID
	count int // of callers
	done  chan struct{}
	err   error // set before done is closed
}

// Done is closed when a run of the key has ended, or no notification would arrive.
func (w *Waiter) Done() <-chan struct{} { return w.done }

// Err is, after Done is closed, why no notification would arrive; nil: one has.
func (w *Waiter) Err() error { return w.err }

// ErrListenerClosed means that a notification would not arrive.
var ErrListenerClosed = errors.New("the listening connection is lost")

// Listen starts a listener, with two connections of cfg: one listens, the other
// sends. It fails if a notification to itself does not arrive within echo.
func Listen(ctx context.Context, cfg *pgxpool.Config, channel string, echo time.Duration) (*Listener, error) {
	cfg.ConnConfig.OnNotification = nil // the application's hook would take notifications away
	if _, set := cfg.ConnConfig.RuntimeParams["application_name"]; !set {
		cfg.ConnConfig.RuntimeParams["application_name"] = channel // for people
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l := &Listener{pool: pool, channel: channel, echo: echo, done: make(chan struct{}), listening: true, waiters: map[pgtype.UUID]*Waiter{}}
	conn, err := l.connect(ctx)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.notifier = newNotifier(ctx, pool, channel)
	go l.run(ctx, conn)
	return l, nil
}

// Notify sends, soon, that a run of the key id has ended. It waits for nothing.
func (l *Listener) Notify(id pgtype.UUID) { l.notifier.add(id) }

// Close sends what is queued, and wakes all waiters.
func (l *Listener) Close() {
	l.stop()
	<-l.notifier.done
	<-l.done
	l.pool.Close()
}

// connect listens, and checks that notifications arrive: through a pooler that
// gives each transaction another session they would not.
func (l *Listener) connect(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.open(ctx, conn); err != nil {
		drop(conn)
		return nil, err
	}
	return conn, nil
}

func (l *Listener) open(ctx context.Context, conn *pgxpool.Conn) error {
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return err
	}
	echo := "echo " + rand.Text()
	if _, err := l.pool.Exec(ctx, notifySQL, l.channel, echo); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, l.echo)
	defer cancel()
	for {
		n, err := conn.Conn().WaitForNotification(short)
		switch {
		case err == nil && n.Payload == echo:
			return nil
		case err != nil && short.Err() != nil && ctx.Err() == nil:
			return fmt.Errorf("%w: a notification does not arrive: Options.Notify needs a session of its own, which PgBouncer does not give in transaction mode; connect to the server itself, or turn it off", pgwire.ErrUnsafe)
		case err != nil:
			return err
		}
	}
}

// drop closes a connection that listens. A pooler may keep its session.
func drop(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = conn.Exec(ctx, "UNLISTEN *")
	_ = conn.Conn().Close(ctx)
	conn.Release()
}

// How often a quiet connection is tested, how long a test may take, and the longest
// pause between two attempts to connect.
const (
	testEvery    = 15 * time.Second
	testTimeout  = 5 * time.Second
	longestPause = 5 * time.Second
)

// run listens until ctx ends.
func (l *Listener) run(ctx context.Context, conn *pgxpool.Conn) {
	defer close(l.done)
	for pause := time.Duration(0); ; {
		if conn != nil {
			l.setListening(true)
			l.listen(ctx, conn)
			l.setListening(false)
			drop(conn)
			pause = 0
		}
		if pause = min(pause*2+50*time.Millisecond, longestPause); !pgwire.Sleep(ctx, pause) {
			return
		}
		in, cancel := context.WithTimeout(ctx, 2*l.echo) // it may hang, too
		conn, _ = l.connect(in)
		cancel()
	}
}

// listen returns when the connection breaks, or ctx ends.
func (l *Listener) listen(ctx context.Context, conn *pgxpool.Conn) {
	for {
		short, cancel := context.WithTimeout(ctx, testEvery)
		n, err := conn.Conn().WaitForNotification(short)
		quiet := short.Err() != nil
		cancel()
		switch {
		case err == nil:
			l.wakeAll(n.Payload)
			continue
		case quiet && ctx.Err() == nil:
			short, cancel = context.WithTimeout(ctx, testTimeout)
			err = conn.Ping(short)
			cancel()
		}
		if err != nil {
			return
		}
	}
}

// setListening notes whether the connection listens. When it stops, all waiters are
// woken, because no notification would wake them.
func (l *Listener) setListening(listening bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listening = listening
	if !listening {
		for id := range l.waiters {
			l.wake(id, ErrListenerClosed)
		}
	}
}

// wakeAll wakes the waiters for the keys in a notification.
func (l *Listener) wakeAll(text string) {
	ids, err := hex.DecodeString(text)
	if err != nil {
		return // an echo
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; len(ids) >= idSize; ids = ids[idSize:] {
		l.wake(pgtype.UUID{Bytes: [idSize]byte(ids[:idSize]), Valid: true}, nil)
	}
}

// wake wakes the waiter for id. The caller holds mu.
func (l *Listener) wake(id pgtype.UUID, err error) {
	if w := l.waiters[id]; w != nil {
		w.err = err
		close(w.done)
		delete(l.waiters, id)
	}
}

// Join adds a caller to the waiter for id. From now on the waiter is woken by each
// commit that ends a run of id, or when the listener loses its connection. Leave it
// afterwards.
func (l *Listener) Join(id pgtype.UUID) (*Waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.listening {
		return nil, ErrListenerClosed
	}
	w := l.waiters[id]
	if w == nil {
		w = &Waiter{id: id, done: make(chan struct{})}
		l.waiters[id] = w
	}
	w.count++
	return w, nil
}

// Leave removes a caller from its waiter.
func (l *Listener) Leave(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.count--; w.count == 0 && l.waiters[w.id] == w {
		delete(l.waiters, w.id)
	}
}

// Waiting is the number of callers that wait.
func (l *Listener) Waiting() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.waiters {
		n += w.count
	}
	return n
}
