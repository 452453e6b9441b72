package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Tx returns a store.Tx for a transaction that the caller begins and ends. Its methods
// change records within that transaction. If the transaction is of another database or
// schema than the store, they return ErrForeign. A store.Tx is not safe for concurrent
// use.
//
// A claim takes an advisory lock on its key until the transaction ends. Meanwhile, a claim
// of the same key in another transaction does not wait: it gets a record in state
// Processing. A claim of the key without a transaction, as a Guard makes it, waits for up
// to Options.LockTimeout, and then fails with ErrBusy.
//
// The setting synchronous_commit of the transaction decides whether its commit is
// durable. If the transaction is REPEATABLE READ or SERIALIZABLE, and another one has
// claimed the key since it began, the server returns a serialization failure (40001): run
// the transaction again.
func (s *Store) Tx(tx pgx.Tx) store.Tx { return s.newTx(tx, false) }

// storeTx is the store in a transaction.
type storeTx struct {
	store   *Store
	session session
	// deferInsert: a claim of a new key is not inserted before its settlement, in one
	// statement with it, and sets the savepoint of the handler. For Guard.RunIn, which
	// settles each claim that it commits.
	deferInsert bool
	// ownsTx: the transaction is of one call alone, and COMMIT ends it. A handler
	// directly after the claim needs no savepoint, because the transaction has no
	// other writes: it is rolled back and begun again.
	ownsTx      bool
	idleTimeout *string       // idle_in_transaction_session_timeout; nil: as it is set
	limit       time.Duration // ownsTx: of each call of the store; see semel.Options.StoreTimeout
	pipeline    pgwire.Pipeline
	pending     map[pgtype.UUID]*table.Pending
	hasStandby  bool   // commits wait for a synchronous standby
	lookup      lookup // the answer of lookUp, until the next one
	// For a batch: the results of lookUpMany, each for one claim, and whether
	// settlements stay in pending until queueInserts.
	keyStates       map[pgtype.UUID]*keyState
	holdSettlements bool
	depth           int
	restarted       bool // ownsTx: rolled back after the handler failed, and begun again
	claimSavepoint  bool // the savepoint of depth 1 was set together with the claim

	// The claim that won, and the record that it replaced.
	claimed  *store.Proposal
	replaced *store.Seen

	lastID       pgtype.UUID     // the key of the last claim
	outerHandler *runningHandler // the handler that the transaction is used in, or nil
	handler      *handlertx.State
	ended        bool // the handler may have ended the transaction itself
	uncertain    bool // it may have, but a failed transaction cannot tell
	checked      bool // it had not, when the last queueCheck was answered
	unread       bool // the connection was closed, because a handler has left rows open
	withinItself bool // a call was made by a handler for the same key
}

func (s *Store) newTx(db pgwire.Execer, late bool) *storeTx {
	t := &storeTx{pending: map[pgtype.UUID]*table.Pending{}, handler: &handlertx.State{}}
	t.init(s, db, late)
	return t
}

func (t *storeTx) init(s *Store, db pgwire.Execer, late bool) {
	t.store, t.deferInsert = s, late
	t.session = session{db: db, sql: s.txSQL, strict: s.txSQL, inTx: true}
	t.pipeline.DB = db
}

// Claim implements store.Tx.
func (t *storeTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return t.claimID(ctx, table.ID(p.Key), &p)
}

func (t *storeTx) claimID(ctx context.Context, id pgtype.UUID, p *store.Proposal) (f store.Found, err error) {
	t.lastID = id
	f, err = t.claim(ctx, id, p)
	if err == nil && f.Won {
		t.claimed, t.replaced = p, nil
	}
	return f, pgwire.Explain("claim in a transaction", err)
}

func (t *storeTx) claim(ctx context.Context, id pgtype.UUID, p *store.Proposal) (store.Found, error) {
	if claim, ok := t.pending[id]; ok {
		return p.Found(&claim.Record, claim.Record.Updated), nil
	}
	state, known := t.keyStates[id]
	if known {
		delete(t.keyStates, id)
	} else {
		var err error
		if state, err = t.lookUp(ctx, id); err != nil {
			return store.Found{}, err
		}
	}
	if f, claim, err := state.found(p); claim || err != nil {
		if err == nil && t.hasStandby && !t.ownsTx && f.Record.State.Terminal() {
			err = t.store.confirm(ctx) // the caller's transaction may only read
		}
		return f, err
	}
	now := store.Time(state.now)
	if t.outerHandler.runsKey(t.store, id) {
		t.withinItself = true
		return inProgress(p, &store.Record{Created: now}, now), nil
	}
	if !t.deferInsert {
		r, err := t.session.claim(ctx, p)
		return r.Found, err
	}
	claim := &table.Pending{Proposal: *p, Record: p.Insert(now, uint64(state.sweptFence))}
	if t.pending == nil {
		t.pending = make(map[pgtype.UUID]*table.Pending, 1)
	}
	t.pending[id] = claim
	return p.Found(&claim.Record, now), nil
}

// Swap implements store.Tx.
func (t *storeTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	if err = t.flushPending(ctx, table.ID(seen.Key)); err == nil {
		t.claimSavepoint = false // rolling back to it would undo the swap too
		var r reading
		r, err = t.session.swap(ctx, seen, &p)
		f = r.Found
	}
	if err == nil && f.Won {
		t.claimed, t.replaced = &p, &seen
	}
	return f, pgwire.Explain("swap in a transaction", err)
}

// flushPending sends queued statements, and the insert of a pending claim.
func (t *storeTx) flushPending(ctx context.Context, id pgtype.UUID) error {
	if claim, ok := t.pending[id]; ok {
		if err := t.insert(id, claim, claim.Proposal); err != nil {
			return err
		}
	}
	return t.pipeline.Flush(ctx)
}

// Settle implements store.Tx.
func (t *storeTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	return pgwire.Explain("settle in a transaction", t.limited(ctx, func(ctx context.Context) error {
		return t.settle(ctx, table.ID(l.Key), &l, &s)
	}))
}

func (t *storeTx) settle(ctx context.Context, id pgtype.UUID, lease *store.Lease, settlement *store.Settlement) error {
	t.claimSavepoint = false
	if claim, ok := t.pending[id]; ok && claim.Record.Lease() == *lease && claim.Record.State == store.Processing {
		if t.holdSettlements {
			return claim.Settle(settlement)
		}
		p := claim.Proposal
		p.State, p.Attempt, p.Outcome, p.Error, p.Lease, p.Keep = settlement.State, settlement.Attempt, settlement.Outcome, settlement.Error, settlement.Wait, settlement.Keep
		if err := t.insert(id, claim, p); err != nil {
			return err
		}
		if t.depth > 0 {
			return nil // the end of Nested, or of the transaction, sends it
		}
		return t.pipeline.Flush(ctx)
	}
	if err := t.flushPending(ctx, id); err != nil {
		return err
	}
	r, err := newSettleRequest(lease, settlement)
	if err != nil {
		return err
	}
	if err = t.session.settle(ctx, r); errors.Is(err, errSettledBefore) {
		return nil // in this transaction
	}
	return err
}

const (
	beginStatement  = "begin isolation level read committed" // as pgx sends it
	commitStatement = "COMMIT"
)

func savepoint(depth int) string { return "semel_" + strconv.Itoa(depth) }

// Nested implements store.Tx by a savepoint.
func (t *storeTx) Nested(ctx context.Context, fn func() error) (err error) {
	ownTx := t.ownsTx && t.depth == 0 // no savepoint: the owner rolls back
	name, start, restartTx := savepoint(t.depth), t.pipeline.Length(), false
	switch {
	case ownTx:
	case t.claimSavepoint && t.depth == 1:
		start, t.claimSavepoint, restartTx = 0, false, t.ownsTx
	default:
		t.pipeline.Push("SAVEPOINT "+name, nil, nil)
		if !t.deferInsert || t.depth > 0 { // otherwise the claim sends it
			if err := t.limited(ctx, t.pipeline.Flush); err != nil {
				return pgwire.Explain("savepoint", err)
			}
		}
	}
	pending, done := t.pending, false
	if !t.ownsTx { // otherwise the handler cannot reach it
		pending = maps.Clone(pending)
	}
	t.depth++
	defer func() {
		t.depth--
		if done {
			return
		}
		t.pending, t.claimSavepoint = pending, false
		switch {
		case ownTx:
		case restartTx:
			t.restarted = true
			err = t.undo(ctx, "ROLLBACK; "+beginStatement, start, err)
		default:
			err = t.undo(ctx, "ROLLBACK TO "+name+"; RELEASE "+name, start, err)
		}
	}()
	err = fn()
	if err != nil || ownTx {
		done = err == nil
		return err
	}
	if t.ownsTx {
		done = true // COMMIT releases all
		return nil
	}
	t.pipeline.Push("RELEASE "+name, nil, nil)
	if !t.deferInsert || t.depth == 1 { // the caller may send statements of its own next
		if err := t.limited(ctx, t.pipeline.Flush); err != nil {
			return pgwire.Explain("release the savepoint", err)
		}
	}
	done = true
	return nil
}

// undo rolls back to a savepoint, which was queued at start, or to the beginning. The
// context of the caller may have ended, although the transaction goes on.
func (t *storeTx) undo(ctx context.Context, sql string, start int, cause error) error {
	if !t.pipeline.Cut(start) {
		return cause // it was never set
	}
	if t.unread {
		return cause // closing the connection has undone all
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(t.limit, defaultStoreTimeout))
	defer cancel()
	_, err := t.session.db.Exec(ctx, sql)
	if err != nil && cause != nil {
		return fmt.Errorf("pgstore: roll back to the savepoint: %w, after: %w", err, cause)
	}
	return cause
}

// closeUnread is handlertx.CloseUnread for the handler of t.
func (t *storeTx) closeUnread(err error) error {
	conn := t.pipeline.Conn()
	if f, kept := errors.AsType[*semel.Failure](err); kept && f != nil && !driver.IsNoEffect(err) && handlertx.IsUnread(conn) {
		err = fmt.Errorf("it returned: %v", err) //nolint:errorlint // nothing can be kept
	}
	err = handlertx.CloseUnread(conn, cmp.Or(t.limit, defaultStoreTimeout), err)
	t.unread = errors.Is(err, handlertx.ErrUnread) && conn != nil && conn.IsClosed()
	return err
}
