package pgoutbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// listener waits for notifications on a connection of its own. If the connection breaks,
// it connects again, and wakes the publisher, because a notification may have been lost.
type listener struct {
	config  *pgxpool.Config
	channel string
	woken   chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
}

// Woken implements outbox.Store. The first call starts the connection that listens.
func (b *Outbox) Woken() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.options.NoListen || b.closed {
		return nil
	}
	if b.listener == nil {
		ctx, stop := context.WithCancel(context.Background())
		b.listener = &listener{config: b.db.Own.Config(), channel: b.channel, woken: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
		go b.listener.run(ctx)
	}
	return b.listener.woken
}

func (l *listener) close() {
	l.stop()
	<-l.done
}

// How long a connection attempt and a test of a quiet connection may take, how often it
// is tested, and the longest pause between two attempts.
const (
	connectTimeout = 10 * time.Second
	testEvery      = 15 * time.Second
	longestPause   = 5 * time.Second
)

func (l *listener) run(ctx context.Context) {
	defer close(l.done)
	for pause := time.Duration(0); ; {
		if l.listen(ctx) {
			pause = 0
		}
		if pause = min(pause*2+50*time.Millisecond, longestPause); !pgwire.Sleep(ctx, pause) {
			return
		}
	}
}

// listen returns when the connection breaks, or ctx ends. It reports whether it had one.
func (l *listener) listen(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := l.connect(limited)
	if err != nil {
		return false
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if after := l.config.AfterConnect; after != nil && after(limited, conn) != nil {
		return false
	}
	if _, err := conn.Exec(limited, "LISTEN "+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return false
	}
	l.wake()
	for {
		short, cancel := context.WithTimeout(ctx, testEvery)
		_, err := conn.WaitForNotification(short)
		isQuiet := short.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			l.wake()
		case !isQuiet:
			return true
		default:
			short, cancel := context.WithTimeout(ctx, connectTimeout)
			err := conn.Ping(short)
			cancel()
			if err != nil {
				return true
			}
		}
	}
}

// connect opens a connection as the store's pool does: a hook of the application may set
// its password.
func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := l.config.ConnConfig.Copy()
	if before := l.config.BeforeConnect; before != nil {
		if err := before(ctx, cfg); err != nil {
			return nil, err
		}
	}
	cfg.OnNotification = nil // the application's hook would take notifications away
	return pgx.ConnectConfig(ctx, cfg)
}

func (l *listener) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}
