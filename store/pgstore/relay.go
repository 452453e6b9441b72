package pgstore

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// When calls of Atomic.Run have all the connections that the application's pool
// may have, those that come wait. A run that ends then sends, behind its COMMIT,
// the BEGIN and the look of one that waits, and hands its connection over with
// the transaction open: that run is spared a round trip, and the connection is
// held for two of them, besides the handler's, and not three.
//
// Nothing of what runs do or find changes. The look is made after the COMMIT,
// and what it fails by is no failure of the run before. If that does not commit,
// the one that waits begins by itself.
type relay struct {
	mu    sync.Mutex
	room  int    // how many more may take a connection from the pool
	waits []*leg // the longest first
}

// leg is a run that waits for its turn.
type leg struct {
	t    *storeTx      // of which another sets nothing but what the look gives
	id   pgtype.UUID   // of its key
	told chan struct{} // closed: it has a place, and what follows
	late chan struct{} // closed: the COMMIT that it is begun behind has no answer

	conn   *pgxpool.Conn // nil: it takes one by itself
	tx     pgx.Tx        // open on conn, and looked in
	handed int           // how often conn was handed over
}

// maxHanded is how often a connection is handed over before it goes back to the
// pool, where others may wait for it, and its lifetime may be over.
const maxHanded = 16

// newRelay is that of a pool. One whose hooks see each connection that is taken
// or given back, such as to set whose it is, keeps to that.
func newRelay(cfg *pgxpool.Config) *relay {
	if cfg.PrepareConn != nil || cfg.BeforeAcquire != nil || cfg.AfterRelease != nil { //nolint:staticcheck // it may still be in use
		return &relay{room: math.MaxInt}
	}
	return &relay{room: int(cfg.MaxConns)}
}

// join gives a run a place, or, if there is none, a leg to wait for one. Who has
// a place gives it back by free.
func (r *relay) join(t *storeTx, id pgtype.UUID) *leg {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room > 0 {
		r.room--
		return nil
	}
	l := &leg{t: t, id: id, told: make(chan struct{}), late: make(chan struct{})}
	r.waits = append(r.waits, l)
	return l
}

// next is who has waited longest, or nil, and waits no longer.
func (r *relay) next() *leg {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.take()
}

func (r *relay) take() (l *leg) {
	if len(r.waits) > 0 {
		l, r.waits[0] = r.waits[0], nil
		r.waits = r.waits[1:]
	}
	return l
}

// free gives the place of a run to who waits, or back.
func (r *relay) free() {
	r.mu.Lock()
	l := r.take()
	if l == nil {
		r.room++
	}
	r.mu.Unlock()
	if l != nil {
		close(l.told)
	}
}

// leave is for a leg that gave up. False: another is at it, and will tell.
func (r *relay) leave(l *leg) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waits, l)
	if i >= 0 {
		r.waits = slices.Delete(r.waits, i, i+1)
	}
	return i >= 0
}

// wait is until l has its turn, and a place. After an error another may still be
// at it.
func (r *relay) wait(ctx context.Context, l *leg) error {
	var err error
	select {
	case <-l.told:
		return nil
	case <-l.late:
		err = errHeldUp
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !r.leave(l) {
		go func() {
			<-l.told
			if l.conn != nil {
				giveBack(l.conn)
			}
			r.free()
		}()
	}
	return err
}

// errHeldUp: the COMMIT of another run waits for something, or its connection
// hangs. Who was to be begun behind it waits no longer, for other connections may
// be free, and tries anew.
var errHeldUp = errors.New("held up by the commit of another")

// heldUp is how long a run waits for the COMMIT that it is begun behind.
const heldUp = time.Second

// send queues the beginning of a leg behind the COMMIT of another run.
func (l *leg) send(line *pipeline) {
	line.push(beginSQL, nil, nil)
	l.t.ask(line, l.id)
}
