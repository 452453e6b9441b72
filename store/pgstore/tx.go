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

// Tx is the store inside a transaction that the caller has open, and commits
// or rolls back. Its claims take an advisory lock on the key, which lasts as
// long as the transaction: while one has it, the claims of others come back as
// if a Processing record were there, and do not wait. A transaction of another
// database or schema is ErrForeign. Not safe for concurrent use.
//
// How durable the commit is, is up to the transaction (synchronous_commit). In
// REPEATABLE READ and SERIALIZABLE a key that another has claimed since the
// transaction began is a serialization failure (40001): run the transaction
// again.
func (s *Store) Tx(tx pgx.Tx) store.Tx { return s.newTx(tx, false) }

// storeTx is the store in a transaction.
type storeTx struct {
	s  *Store
	db session
	// late: a claim of an absent key is written by its settlement, in one
	// insert, and brings the savepoint of the handler, which comes next. For
	// Guard.RunIn, which settles what it commits.
	late bool
	// own: the transaction is of this call alone. It ends by COMMIT behind
	// what is queued. Before a handler that comes right behind a claim there is
	// nothing in it, so it needs no savepoint: what undoes the handler is to
	// begin again.
	own     bool
	idle    *string // idle_in_transaction_session_timeout; nil: as it is set
	line    pgwire.Pipeline
	pending map[pgtype.UUID]*pending
	one     sight // what look gives, until the next
	// Of a batch: what it found of its keys, each for one claim, and whether
	// settlements stay in pending until writeHeld.
	looks map[pgtype.UUID]*looked
	hold  bool
	depth int
	ahead bool // the savepoint of depth 1 was set together with the claim

	// The claim that won, and what was seen of the record that it replaced.
	won  *store.Proposal
	seen *store.Seen

	asked  pgtype.UUID // the last key that was claimed
	within *runs       // in whose handler it is; nil: in none
}

// pending is a claim that is not written yet.
type pending struct {
	p   store.Proposal
	r   store.Record
	end table.StateColumns // of one that was settled, and is held back
}

func (s *Store) newTx(db pgwire.Execer, late bool) *storeTx {
	t := &storeTx{pending: map[pgtype.UUID]*pending{}}
	t.init(s, db, late)
	return t
}

func (t *storeTx) init(s *Store, db pgwire.Execer, late bool) {
	t.s, t.late = s, late
	t.db = session{db: db, sql: s.txSQL, strict: s.txSQL, inTx: true}
	t.line.DB = db
}

// Claim implements store.Tx.
func (t *storeTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return t.claimID(ctx, table.ID(p.Key), &p)
}

func (t *storeTx) claimID(ctx context.Context, id pgtype.UUID, p *store.Proposal) (f store.Found, err error) {
	t.asked = id
	f, err = t.claim(ctx, id, p)
	if err == nil && f.Won {
		t.won, t.seen = p, nil
	}
	return f, pgwire.Explain("claim in a transaction", err)
}

func (t *storeTx) claim(ctx context.Context, id pgtype.UUID, p *store.Proposal) (store.Found, error) {
	if is, ok := t.pending[id]; ok {
		return table.Found(&is.r, p, is.r.Updated), nil
	}
	l, gathered := t.looks[id]
	if gathered {
		delete(t.looks, id)
	} else {
		var err error
		if l, err = t.look(ctx, id); err != nil {
			return store.Found{}, err
		}
	}
	if f, is, err := l.found(p); is || err != nil {
		return f, err
	}
	now := store.Time(l.now)
	if t.within.has(t.s, id) {
		return busy(p, &store.Record{Created: now}, now), nil
	}
	if !t.late {
		return t.db.claim(ctx, p)
	}
	is := &pending{p: *p, r: p.Insert(now, uint64(l.swept))}
	if t.pending == nil {
		t.pending = make(map[pgtype.UUID]*pending, 1)
	}
	t.pending[id] = is
	return table.Found(&is.r, p, now), nil
}

// found is what is there of the key of a claim; false: nothing, and it is free.
func (l *looked) found(p *store.Proposal) (f store.Found, is bool, err error) {
	now := store.Time(l.now)
	switch {
	case l.w.ID.Valid:
		if f, err = l.w.Found(p.Key, l.now); err != nil {
			return f, true, err
		}
		if over := f.Record.Expired(now); l.locked || f.Record.State.Terminal() && !over {
			return table.Found(&f.Record, p, now), true, nil
		}
		return busy(p, &f.Record, now), true, nil
	case !l.locked:
		return busy(p, &store.Record{Created: now}, now), true, nil
	}
	return f, false, nil
}

// retryAfter is when a duplicate of a transaction in flight may ask again.
const retryAfter = time.Second

// busyHolder names, for people, who holds what is not committed yet.
const busyHolder = "a transaction"

// busy stands for what another transaction is about to commit.
func busy(p *store.Proposal, is *store.Record, now time.Time) store.Found {
	until := store.Time(store.Micros(now.Add(retryAfter)))
	return store.Found{Now: now, Record: store.Record{
		Key: p.Key, State: store.Processing, Policy: p.Policy, Fingerprint: p.Fingerprint, Holder: busyHolder,
		Fence: is.Fence, Attempt: is.Attempt, Created: is.Created, Updated: now, Until: until, Format: store.Format,
	}}
}

// looked is what a transaction sees of a key.
type looked struct {
	locked     bool
	now, swept int64
	w          table.Row
}

// look takes the key's lock, and reads the record. What it gives is overwritten
// by the next.
func (t *storeTx) look(ctx context.Context, id pgtype.UUID) (l *looked, err error) {
	t.ask(id)
	if t.late && t.depth == 1 && !t.own { // the handler comes next
		t.line.Push("SAVEPOINT "+savepoint(1), nil, nil)
	}
	err = t.line.Flush(ctx)
	t.ahead = t.late && t.depth == 1
	return &t.one.looked, t.s.isOurs(err, t.one.of)
}

// sight is a look at a key: the question and its answer, which all go by their
// addresses.
type sight struct {
	looked
	id, of    pgtype.UUID // of is what the database calls itself
	high, low pgtype.Int4
	packed    []byte
	args      [4]any
	to        [6]any
	read      func(pgx.BatchResults) error
}

// ask queues a look, whose answer is t.one.
func (t *storeTx) ask(id pgtype.UUID) {
	l := &t.one
	*l = sight{id: id, read: l.read, high: pgtype.Int4{Valid: true}, low: pgtype.Int4{Valid: true}}
	l.high.Int32, l.low.Int32 = t.s.lockOf(id)
	l.args = [...]any{&l.id, &l.high, &l.low, t.idle}
	l.to = [...]any{&l.now, &l.locked, &l.swept, &l.of, &l.packed, nil}
	if l.read == nil {
		l.read = t.readLook
	}
	t.line.Push(t.s.txSQL.Lock, l.args[:], l.read)
}

func (t *storeTx) readLook(res pgx.BatchResults) error {
	l := &t.one
	err := res.QueryRow().Scan(l.to[:]...)
	if err == nil && l.packed != nil && l.of == t.s.id {
		err = l.w.Unpack(l.packed)
	}
	return err
}

// isOurs is err, or why a look at a database that calls itself of was in vain.
func (s *Store) isOurs(err error, of pgtype.UUID) error {
	switch {
	case pgwire.Code(err) == pgwire.UndefinedTable:
		return fmt.Errorf("%w: the transaction is of a database without Semel's tables: %w", ErrForeign, err)
	case err == nil && of != s.id:
		return fmt.Errorf("%w: the transaction is of another database than the store", ErrForeign)
	}
	return err
}

// lockOf is the advisory lock of a key. Other keys, or others who use such
// locks, may have the same: they then only wait for each other.
func (s *Store) lockOf(id pgtype.UUID) (int32, int32) {
	n := table.KeyHash(id) ^ table.KeyHash(s.id)
	return int32(n >> 32), int32(n) //nolint:gosec // any bits will do
}

// Swap implements store.Tx.
func (t *storeTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	if err = t.catchUp(ctx, table.ID(seen.Key)); err == nil {
		t.ahead = false // it would undo this too
		f, err = t.db.swap(ctx, seen, &p)
	}
	if err == nil && f.Won {
		t.won, t.seen = &p, &seen
	}
	return f, pgwire.Explain("swap in a transaction", err)
}

// catchUp writes what is queued, and a pending claim.
func (t *storeTx) catchUp(ctx context.Context, id pgtype.UUID) error {
	if is, ok := t.pending[id]; ok {
		if err := t.insert(id, is, is.p); err != nil {
			return err
		}
	}
	return t.line.Flush(ctx)
}

// Settle implements store.Tx.
func (t *storeTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	return pgwire.Explain("settle in a transaction", t.settle(ctx, table.ID(l.Key), &l, &s))
}

func (t *storeTx) settle(ctx context.Context, id pgtype.UUID, l *store.Lease, s *store.Settlement) error {
	t.ahead = false
	if is, ok := t.pending[id]; ok && is.r.Lease() == *l && is.r.State == store.Processing {
		if t.hold {
			return is.settle(s)
		}
		p := is.p
		p.State, p.Attempt, p.Outcome, p.Error, p.Lease, p.Keep = s.State, s.Attempt, s.Outcome, s.Error, s.Wait, s.Keep
		if err := t.insert(id, is, p); err != nil {
			return err
		}
		if t.depth > 0 {
			return nil // the end of Nested, or of the transaction, sends it
		}
		return t.line.Flush(ctx)
	}
	if err := t.catchUp(ctx, id); err != nil {
		return err
	}
	r, err := newSettleRequest(l, s)
	if err != nil {
		return err
	}
	return t.db.settle(ctx, r)
}

// insert queues the row of a pending claim, as p says. It fails if another
// has inserted one meanwhile, without this key's lock: a leased call.
func (t *storeTx) insert(id pgtype.UUID, is *pending, p store.Proposal) error {
	args, err := table.ProposalArgs(id, &p)
	if err != nil {
		return err
	}
	t.line.Push(t.db.sql.Insert, append(args, store.Micros(is.r.Created), table.Fence(is.r.Fence)), nil)
	delete(t.pending, id)
	return nil
}

const (
	beginStatement  = "begin isolation level read committed" // as pgx has it
	commitStatement = "COMMIT"
)

func savepoint(depth int) string { return "semel_" + strconv.Itoa(depth) }

// Nested implements store.Tx by a savepoint.
func (t *storeTx) Nested(ctx context.Context, fn func() error) (err error) {
	whole := t.own && t.depth == 0 // the transaction itself; its owner undoes it
	name, at, fresh := savepoint(t.depth), t.line.Length(), false
	switch {
	case whole:
	case t.ahead && t.depth == 1:
		at, t.ahead, fresh = 0, false, t.own
	default:
		t.line.Push("SAVEPOINT "+name, nil, nil)
		if !t.late || t.depth > 0 { // else a claim comes first
			if err := t.line.Flush(ctx); err != nil {
				return pgwire.Explain("savepoint", err)
			}
		}
	}
	was, done := t.pending, false
	if !t.own { // else its handler cannot reach it
		was = maps.Clone(was)
	}
	t.depth++
	defer func() {
		t.depth--
		if done {
			return
		}
		t.pending, t.ahead = was, false
		switch {
		case whole:
		case fresh:
			err = t.undo(ctx, "ROLLBACK; "+beginStatement, at, err)
		default:
			err = t.undo(ctx, "ROLLBACK TO "+name+"; RELEASE "+name, at, err)
		}
	}()
	err = fn()
	if err != nil || whole {
		done = err == nil
		return err
	}
	if t.own {
		done = true // COMMIT releases all
		return nil
	}
	t.line.Push("RELEASE "+name, nil, nil)
	if !t.late || t.depth == 1 { // the caller may go on with statements of its own
		if err := t.line.Flush(ctx); err != nil {
			return pgwire.Explain("release the savepoint", err)
		}
	}
	done = true
	return nil
}

// undo goes back to a savepoint, which was queued at a place, or to the
// beginning. The caller's context may be over, and the transaction not.
func (t *storeTx) undo(ctx context.Context, sql string, at int, after error) error {
	if !t.line.Cut(at) {
		return after // it was never set
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := t.db.db.Exec(ctx, sql)
	if err != nil && after != nil {
		return fmt.Errorf("pgstore: undo to the savepoint: %w, after: %w", err, after)
	}
	return after
}
