package pgstore

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
)

// ear listens, on a connection of its own, for the ends of runs, and tells
// those who wait for one. It connects again when the connection breaks. Its
// mouth says to all ears what ended here.
type ear struct {
	pool    *pgxpool.Pool // of two connections: one listens, one is for mouth; and spare ones
	mouth   *mouth
	channel string
	echo    time.Duration
	stop    context.CancelFunc
	done    chan struct{}

	mu    sync.Mutex
	hears bool
	by    map[pgtype.UUID]*listener
}

// listener is what those share who wait for one key.
type listener struct {
	id   pgtype.UUID
	n    int
	told chan struct{}
	err  error // set before told is closed
}

// errDeaf: a notification would not arrive.
var errDeaf = errors.New("the connection that listens is lost")

// listen makes an ear. It fails if that does not hear what is sent.
func listen(ctx context.Context, cfg *pgxpool.Config, o *Options) (*ear, error) {
	cfg = sized(cfg, 2+spareConns)
	cfg.ConnConfig.OnNotification = nil // the application's would take them away
	if _, set := cfg.ConnConfig.RuntimeParams["application_name"]; !set {
		cfg.ConnConfig.RuntimeParams["application_name"] = o.channel() // for people
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e := &ear{pool: pool, channel: o.channel(), echo: o.echo, done: make(chan struct{}), hears: true, by: map[pgtype.UUID]*listener{}}
	conn, err := e.connect(ctx)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.mouth = newMouth(ctx, pool, e.channel)
	go e.run(ctx, conn)
	return e, nil
}

// close ends all waiting, when what ended here was said.
func (e *ear) close() {
	e.stop()
	<-e.mouth.done
	<-e.done
	e.pool.Close()
}

// connect listens, and makes sure that it hears: through a pooler that gives
// each transaction another session it would not.
func (e *ear) connect(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.open(ctx, conn); err != nil {
		drop(conn)
		return nil, err
	}
	return conn, nil
}

func (e *ear) open(ctx context.Context, conn *pgxpool.Conn) error {
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{e.channel}.Sanitize()); err != nil {
		return err
	}
	echo := "echo " + rand.Text()
	if _, err := e.pool.Exec(ctx, notify, e.channel, echo); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, e.echo)
	defer cancel()
	for {
		n, err := conn.Conn().WaitForNotification(short)
		switch {
		case err == nil && n.Payload == echo:
			return nil
		case err != nil && short.Err() != nil && ctx.Err() == nil:
			return fmt.Errorf("%w: a notification does not arrive: Options.Notify needs a session of its own, which PgBouncer does not give in transaction mode; connect to the server itself, or turn it off", ErrUnsafe)
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

// How often a connection that hears nothing is tried, and how long that may
// take; and the longest pause between two attempts to connect.
const (
	earTrial   = 15 * time.Second
	earPatient = 5 * time.Second
)

// run hears until ctx is over.
func (e *ear) run(ctx context.Context, conn *pgxpool.Conn) {
	defer close(e.done)
	for pause := time.Duration(0); ; {
		if conn != nil {
			e.set(true)
			e.hear(ctx, conn)
			e.set(false)
			drop(conn)
			pause = 0
		}
		if pause = min(pause*2+50*time.Millisecond, earPatient); !sleep(ctx, pause) {
			return
		}
		in, cancel := context.WithTimeout(ctx, 2*e.echo) // it may hang, too
		conn, _ = e.connect(in)
		cancel()
	}
}

// hear returns when the connection is broken, or ctx over.
func (e *ear) hear(ctx context.Context, conn *pgxpool.Conn) {
	for {
		short, cancel := context.WithTimeout(ctx, earTrial)
		n, err := conn.Conn().WaitForNotification(short)
		quiet := short.Err() != nil
		cancel()
		switch {
		case err == nil:
			e.tell(n.Payload)
			continue
		case quiet && ctx.Err() == nil:
			short, cancel = context.WithTimeout(ctx, earPatient)
			err = conn.Ping(short)
			cancel()
		}
		if err != nil {
			return
		}
	}
}

// set is what is said when the ear begins to hear, and when it has ended.
// Those who wait when it ends are told, for nothing else may.
func (e *ear) set(hears bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hears = hears
	if !hears {
		for id := range e.by {
			e.end(id, errDeaf)
		}
	}
}

// tell wakes those who wait for the keys in a notification.
func (e *ear) tell(text string) {
	ids, err := hex.DecodeString(text)
	if err != nil {
		return // an echo
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; len(ids) >= idSize; ids = ids[idSize:] {
		e.end(pgtype.UUID{Bytes: [idSize]byte(ids[:idSize]), Valid: true}, nil)
	}
}

// end wakes who waits for id. The lock is held.
func (e *ear) end(id pgtype.UUID, err error) {
	if l := e.by[id]; l != nil {
		l.err = err
		close(l.told)
		delete(e.by, id)
	}
}

// join is a place among those who wait for id: what commits from now on is
// told, or else that the ear hears nothing any more.
func (e *ear) join(id pgtype.UUID) (*listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.hears {
		return nil, errDeaf
	}
	l := e.by[id]
	if l == nil {
		l = &listener{id: id, told: make(chan struct{})}
		e.by[id] = l
	}
	l.n++
	return l, nil
}

func (e *ear) leave(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.n--; l.n == 0 && e.by[l.id] == l {
		delete(e.by, l.id)
	}
}
