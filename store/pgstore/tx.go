package pgstore

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Tx is the store inside a transaction that the caller has begun, and commits or rolls
// back. A claim takes an advisory lock on its key until the transaction ends.
// Meanwhile claims of other callers do not wait: they see a record in state
// Processing. A transaction of another database or schema is ErrForeign. Not safe for
// concurrent use.
//
// The durability of the commit depends on the transaction (synchronous_commit). In
// REPEATABLE READ and SERIALIZABLE, a key that another transaction has claimed since
// this one began is a serialization failure (40001): run the transaction again.
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
	idleTimeout *string // idle_in_transaction_session_timeout; nil: as it is set
	pipeline    pgwire.Pipeline
	pending     map[pgtype.UUID]*pending
	lookup      lookup // the answer of lookUp, until the next one
	// For a batch: the results of lookUpMany, each for one claim, and whether
	// settlements stay in pending until queueInserts.
	keyStates       map[pgtype.UUID]*keyState
	holdSettlements bool
	depth           int
	claimSavepoint  bool // the savepoint of depth 1 was set together with the claim

	// The claim that won, and the record that it replaced.
	claimed  *store.Proposal
	replaced *store.Seen

	lastID       pgtype.UUID     // the key of the last claim
	outerHandler *runningHandler // the handler that the transaction is used in, or nil
}

// pending is a claim that is not inserted yet.
type pending struct {
	proposal store.Proposal
	record   store.Record
	columns  table.StateColumns // of its settlement, with holdSettlements
}

func (s *Store) newTx(db pgwire.Execer, late bool) *storeTx {
	t := &storeTx{pending: map[pgtype.UUID]*pending{}}
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
		return table.Found(&claim.record, p, claim.record.Updated), nil
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
		return f, err
	}
	now := store.Time(state.now)
	if t.outerHandler.runsKey(t.store, id) {
		return inProgress(p, &store.Record{Created: now}, now), nil
	}
	if !t.deferInsert {
		return t.session.claim(ctx, p)
	}
	claim := &pending{proposal: *p, record: p.Insert(now, uint64(state.sweptFence))}
	if t.pending == nil {
		t.pending = make(map[pgtype.UUID]*pending, 1)
	}
	t.pending[id] = claim
	return table.Found(&claim.record, p, now), nil
}

// found is the record of the key. It reports false if the key is free and has no
// record.
func (k *keyState) found(p *store.Proposal) (f store.Found, ok bool, err error) {
	now := store.Time(k.now)
	switch {
	case k.row.ID.Valid:
		if f, err = k.row.Found(p.Key, k.now); err != nil {
			return f, true, err
		}
		if expired := f.Record.Expired(now); k.locked || f.Record.State.Terminal() && !expired {
			return table.Found(&f.Record, p, now), true, nil
		}
		return inProgress(p, &f.Record, now), true, nil
	case !k.locked:
		return inProgress(p, &store.Record{Created: now}, now), true, nil
	}
	return f, false, nil
}

// retryAfter is when to repeat a call whose key another transaction holds.
const retryAfter = time.Second

// inProgressHolder is the displayed holder of a record that is not committed yet.
const inProgressHolder = "a transaction"

// inProgress is a record that stands for the uncommitted record of another
// transaction.
func inProgress(proposal *store.Proposal, record *store.Record, now time.Time) store.Found {
	until := store.Time(store.Micros(now.Add(retryAfter)))
	return store.Found{Now: now, Record: store.Record{
		Key: proposal.Key, State: store.Processing, Policy: proposal.Policy, Fingerprint: proposal.Fingerprint, Holder: inProgressHolder,
		Fence: record.Fence, Attempt: record.Attempt, Created: record.Created, Updated: now, Until: until, Format: store.Format,
	}}
}

// keyState is what a transaction sees of a key.
type keyState struct {
	locked          bool
	now, sweptFence int64
	row             table.Row
}

// lookUp takes the lock of a key, and reads the key's record. The next call
// overwrites the result.
func (t *storeTx) lookUp(ctx context.Context, id pgtype.UUID) (state *keyState, err error) {
	t.queueLookup(id)
	if t.deferInsert && t.depth == 1 && !t.ownsTx { // the handler comes next
		t.pipeline.Push("SAVEPOINT "+savepoint(1), nil, nil)
	}
	err = t.pipeline.Flush(ctx)
	t.claimSavepoint = t.deferInsert && t.depth == 1
	return &t.lookup.keyState, t.store.checkStore(err, t.lookup.storeID)
}

// lookup is the parameters and the answer of the statement Lock. They are in one
// struct because the driver takes all of them by address, so that they are allocated
// together.
type lookup struct {
	keyState
	id, storeID       pgtype.UUID // storeID is semel_meta.store in the transaction's database
	lockHigh, lockLow pgtype.Int4
	packed            []byte
	args              [4]any
	targets           [6]any
	readAnswer        func(pgx.BatchResults) error
}

// queueLookup queues the statement Lock. Its answer goes to t.lookup.
func (t *storeTx) queueLookup(id pgtype.UUID) {
	l := &t.lookup
	*l = lookup{id: id, readAnswer: l.readAnswer, lockHigh: pgtype.Int4{Valid: true}, lockLow: pgtype.Int4{Valid: true}}
	l.lockHigh.Int32, l.lockLow.Int32 = t.store.lockOf(id)
	l.args = [...]any{&l.id, &l.lockHigh, &l.lockLow, t.idleTimeout}
	l.targets = [...]any{&l.now, &l.locked, &l.sweptFence, &l.storeID, &l.packed, nil}
	if l.readAnswer == nil {
		l.readAnswer = t.readLookup
	}
	t.pipeline.Push(t.store.txSQL.Lock, l.args[:], l.readAnswer)
}

func (t *storeTx) readLookup(res pgx.BatchResults) error {
	l := &t.lookup
	err := res.QueryRow().Scan(l.targets[:]...)
	if err == nil && l.packed != nil && l.storeID == t.store.id {
		err = l.row.Unpack(l.packed)
	}
	return err
}

// checkStore returns err, or ErrForeign if the transaction's database has another
// storeID.
func (s *Store) checkStore(err error, storeID pgtype.UUID) error {
	switch {
	case pgwire.Code(err) == pgwire.UndefinedTable:
		return fmt.Errorf("%w: it has no tables of Semel: %w", ErrForeign, err)
	case err == nil && storeID != s.id:
		return fmt.Errorf("%w, or another schema, than the store", ErrForeign)
	}
	return err
}

// lockOf is the advisory lock of a key. Two keys may share a lock, and the application
// may use the same number. They then only wait for each other.
func (s *Store) lockOf(id pgtype.UUID) (int32, int32) {
	n := table.KeyHash(id) ^ table.KeyHash(s.id)
	return int32(n >> 32), int32(n) //nolint:gosec // any bits will do
}

// Swap implements store.Tx.
func (t *storeTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	if err = t.flushPending(ctx, table.ID(seen.Key)); err == nil {
		t.claimSavepoint = false // rolling back to it would undo the swap too
		f, err = t.session.swap(ctx, seen, &p)
	}
	if err == nil && f.Won {
		t.claimed, t.replaced = &p, &seen
	}
	return f, pgwire.Explain("swap in a transaction", err)
}

// flushPending sends queued statements, and the insert of a pending claim.
func (t *storeTx) flushPending(ctx context.Context, id pgtype.UUID) error {
	if claim, ok := t.pending[id]; ok {
		if err := t.insert(id, claim, claim.proposal); err != nil {
			return err
		}
	}
	return t.pipeline.Flush(ctx)
}

// Settle implements store.Tx.
func (t *storeTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	return pgwire.Explain("settle in a transaction", t.settle(ctx, table.ID(l.Key), &l, &s))
}

func (t *storeTx) settle(ctx context.Context, id pgtype.UUID, lease *store.Lease, settlement *store.Settlement) error {
	t.claimSavepoint = false
	if claim, ok := t.pending[id]; ok && claim.record.Lease() == *lease && claim.record.State == store.Processing {
		if t.holdSettlements {
			return claim.settle(settlement)
		}
		p := claim.proposal
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
	return t.session.settle(ctx, r)
}

// insert queues the insert of a pending claim with the state of the proposal. It fails
// if a leased call has inserted the record meanwhile, because leased calls do not take
// the lock of the key.
func (t *storeTx) insert(id pgtype.UUID, claim *pending, proposal store.Proposal) error {
	args, err := table.ProposalArgs(id, &proposal)
	if err != nil {
		return err
	}
	t.pipeline.Push(t.session.sql.Insert, append(args, store.Micros(claim.record.Created), table.Fence(claim.record.Fence)), nil)
	delete(t.pending, id)
	return nil
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
			if err := t.pipeline.Flush(ctx); err != nil {
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
		if err := t.pipeline.Flush(ctx); err != nil {
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := t.session.db.Exec(ctx, sql)
	if err != nil && cause != nil {
		return fmt.Errorf("pgstore: roll back to the savepoint: %w, after: %w", err, cause)
	}
	return cause
}
