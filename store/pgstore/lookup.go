package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// keyState is what a transaction sees of a key.
type keyState struct {
	locked          bool
	now, sweptFence int64
	row             table.Row
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
			return p.Found(&f.Record, now), true, nil
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

// lookUp takes the lock of a key, and reads the key's record. The next call
// overwrites the result.
func (t *storeTx) lookUp(ctx context.Context, id pgtype.UUID) (state *keyState, err error) {
	t.queueLookup(id)
	if t.deferInsert && t.depth == 1 && !t.ownsTx { // the handler comes next
		t.pipeline.Push("SAVEPOINT "+savepoint(1), nil, nil)
	}
	if t.holdSettlements { // a claim that is alone has its limit
		err = t.limited(ctx, t.pipeline.Flush)
	} else {
		err = t.pipeline.Flush(ctx)
	}
	t.claimSavepoint = t.deferInsert && t.depth == 1
	return &t.lookup.keyState, t.store.checkStore(err, t.lookup.storeID)
}

// lookup is the answer of the statement Lock.
type lookup struct {
	keyState
	storeID pgtype.UUID // semel_meta.store in the transaction's database
}

// queueLookup queues the statement Lock. Its answer goes to t.lookup.
func (t *storeTx) queueLookup(id pgtype.UUID) {
	high, low := t.store.lockOf(id)
	t.lookup = lookup{}
	t.pipeline.Push(t.store.txSQL.Lock, []any{id, high, low, t.idleTimeout}, func(res pgx.BatchResults) error {
		l := &t.lookup
		var packed []byte
		err := res.QueryRow().Scan(&l.now, &t.hasStandby, &l.locked, &l.sweptFence, &l.storeID, &packed, nil)
		if err == nil && packed != nil && l.storeID == t.store.id {
			err = l.row.Unpack(packed)
		}
		return err
	})
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

// The statements LockMany, FindCompleted and LockAndInsert are planned once for each
// connection, because planning one costs as much as about fifty keys. A generic plan
// that was made while the table was small would read the whole table for each key,
// unless sequential scans are off. JIT is off as in table.PlannerSettings: compiling a
// statement takes up to a second. restorePlans restores the settings for later statements of
// the transaction.
const (
	useGenericPlans = `SELECT current_setting('synchronous_standby_names') <> '', set_config('semel.plans', current_setting('plan_cache_mode'), true), set_config('semel.scans', current_setting('enable_seqscan'), true),
		set_config('semel.jit', current_setting('jit'), true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`
	restorePlans = `SELECT set_config('plan_cache_mode', current_setting('semel.plans'), true), set_config('enable_seqscan', current_setting('semel.scans'), true), set_config('jit', current_setting('semel.jit'), true)`
)

// lookUpMany is lookUp for many keys in one statement. The next claim of each key uses
// the result.
func (t *storeTx) lookUpMany(ctx context.Context, keys []pgtype.UUID) error {
	if len(keys) == 0 {
		return nil
	}
	t.keyStates = make(map[pgtype.UUID]*keyState, len(keys))
	ids, highs, lows := make([]pgtype.UUID, 0, len(keys)), make([]int32, 0, len(keys)), make([]int32, 0, len(keys))
	for _, id := range keys {
		if _, twice := t.keyStates[id]; !twice {
			high, low := t.store.lockOf(id)
			ids, highs, lows, t.keyStates[id] = append(ids, id), append(highs, high), append(lows, low), nil
		}
	}
	freeState := &keyState{locked: true}
	var storeID pgtype.UUID
	t.pipeline.Push(useGenericPlans, nil, t.readHasStandby)
	t.pipeline.Push(t.session.sql.LockMany, []any{pgwire.Pointers(ids, func(id *pgtype.UUID) pgtype.UUID { return *id }), pgwire.Array(highs), pgwire.Array(lows), t.idleTimeout}, func(res pgx.BatchResults) error {
		return eachRow(res, func(scan func(...any) error) error {
			var state keyState
			var id pgtype.UUID
			var locked pgtype.Bool
			if err := scan(state.row.Fields(&freeState.now, &freeState.sweptFence, &storeID, &id, &locked)...); err != nil {
				return err
			}
			if id.Valid {
				state.locked, state.now, state.sweptFence = locked.Bool, freeState.now, freeState.sweptFence
				t.keyStates[id] = &state
			}
			return nil
		})
	})
	t.pipeline.Push(restorePlans, nil, nil)
	if err := t.store.checkStore(t.pipeline.Flush(ctx), storeID); err != nil {
		return err
	}
	for id, state := range t.keyStates {
		if state == nil {
			t.keyStates[id] = freeState
		}
	}
	return nil
}

// readHasStandby reads the answer of useGenericPlans.
func (t *storeTx) readHasStandby(res pgx.BatchResults) error {
	return res.QueryRow().Scan(&t.hasStandby, nil, nil, nil, nil, nil, nil)
}

// afterCommit finds out what became of a transaction whose COMMIT has failed with err. It
// sets t.ended if the handler has committed the transaction itself.
func (a *Atomic) afterCommit(ctx context.Context, t *ownTx, err error) (committed, known bool) {
	known = pgwire.Refused(err) || errors.Is(err, pgwire.ErrRolledBack)
	if !known && t.claimed != nil { // a step has no claim: its record says when it is used again
		committed, known = a.committed(ctx, t)
	}
	if known && !committed && t.finished.XID() != "" && !t.checked && !t.restarted {
		t.ended, known = t.fate(ctx)
	}
	return committed, known
}

// committed finds out whether a transaction has committed although COMMIT got no
// answer. It waits for the lock of the key, which is free only after the transaction
// has ended. If that cannot be known, the record decides when the call is made again.
func (a *Atomic) committed(ctx context.Context, t *ownTx) (committed, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cleanupTimeout)
	defer cancel()
	for {
		committed, err := a.store.committedAndSettled(ctx, t.claimed)
		if err == nil {
			return committed, true
		}
		if !pgwire.Sleep(ctx, 50*time.Millisecond) {
			return false, false
		}
	}
}

// errInRecovery: the server cannot say what was committed.
var errInRecovery = errors.New("the server is a standby, which may not have replayed the last commits")

// committedAndSettled reports whether the claim is committed and settled.
func (s *Store) committedAndSettled(ctx context.Context, won *store.Proposal) (settled bool, err error) {
	high, low := s.lockOf(table.ID(won.Key))
	err = pgx.BeginTxFunc(ctx, s.ownPool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var inRecovery bool
		err := tx.QueryRow(ctx, `SELECT pg_is_in_recovery(), set_config('idle_in_transaction_session_timeout', $3::text, true), pg_advisory_xact_lock($1::integer, $2::integer)`,
			high, low, s.idleTimeout).Scan(&inRecovery, nil, nil) // with a limit, because this process may freeze
		switch {
		case err != nil:
			return err
		case inRecovery:
			return errInRecovery
		}
		f, err := (&session{db: tx, sql: s.txSQL, inTx: true}).get(ctx, won.Key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		settled = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()
		return err
	})
	if err == nil && settled {
		err = s.confirm(ctx)
	}
	return settled, err
}

// futureXID is the server's code for a transaction that it does not know yet. A standby
// has taken over, and does not have the transaction.
const futureXID = "22023"

// fate finds out whether the handler has committed, or prepared, the transaction itself.
// The transaction has ended by now, or its connection is closed.
func (t *ownTx) fate(ctx context.Context) (committed, known bool) {
	id := t.finished.ID()
	if id.XID == "" {
		return true, true // nobody can know, whenever they ask
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.limit)
	defer cancel()
	for {
		var inRecovery, sameServer bool
		var status *string
		err := t.store.ownPool.QueryRow(ctx, `SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() THEN pg_xact_status($1::text::xid8) END, `+handlertx.ServerStart+` = $2`,
			id.XID, id.Server).Scan(&inRecovery, &status, &sameServer)
		switch {
		case err == nil && inRecovery:
		case err == nil && status != nil && *status == "aborted", pgwire.Code(err) == futureXID:
			return false, true
		case err == nil && !sameServer:
			return false, false // the id may be another transaction's
		case err == nil && (status == nil || *status != "in progress" || !t.isClosed):
			return true, true // in progress with an open connection: prepared
		}
		if !pgwire.Sleep(ctx, 50*time.Millisecond) { // the server may not have noticed that the connection is closed
			return false, false
		}
	}
}

// mayHaveCommitted reports whether the handler may have committed the transaction itself.
func (t *ownTx) mayHaveCommitted(ctx context.Context) bool {
	committed, known := t.fate(ctx)
	return committed || !known
}

// endedUnnamed is handlertx.State.EndedUnnamed for the handler of t.
func (t *storeTx) endedUnnamed(ctx context.Context) bool {
	return t.handler.EndedUnnamed(ctx, t.pipeline.Conn(), t.store.ownPool, cmp.Or(t.limit, defaultStoreTimeout))
}

// shortWaitStore claims and swaps without waiting long for locks.
type shortWaitStore struct{ *Store }

// Claim implements store.Store.
func (s shortWaitStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	r, err := s.shortWaitSession.claim(ctx, &p)
	return r.Found, err
}

// Swap implements store.Store.
func (s shortWaitStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	r, err := s.shortWaitSession.swap(ctx, seen, &p)
	return r.Found, err
}
