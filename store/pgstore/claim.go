package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

type (
	claimBatcher = coalesce.Batcher[*store.Proposal, reading]
	claimItem    = coalesce.Item[*store.Proposal, reading]
)

// errSendAlone: the server refused a batch, and nothing was changed. Each request is
// sent again alone, on the goroutine of its caller, so that a row that is locked or
// cannot be written delays no other request.
var errSendAlone = errors.New("the server refused the batch; send the request alone")

// errRowLocked: the row is locked. The caller waits for it outside of the batch.
var errRowLocked = errors.New("the row is locked")

// queuedPerFlush is coalesce.Options.QueuedPerFlush: a batch costs the server and the
// client as much as twenty or thirty requests in it.
const queuedPerFlush = 16

// relaxedFlushers limits the batches of relaxed claims in flight. Their commits do not
// wait for the disk, so more batches would only be less full. With a single one, a
// batch that hangs would stop all claims.
const relaxedFlushers = 2

func (s *Store) newClaimBatcher() *claimBatcher {
	flushers := s.options.Flushers
	if s.options.RelaxedClaims {
		flushers = min(flushers, relaxedFlushers)
	}
	return coalesce.New(s.flushClaims, &coalesce.Options[*store.Proposal]{
		MaxBatch: s.options.MaxBatch, QueuedPerFlush: queuedPerFlush, Flushers: flushers,
		// Equal keys must not share a statement.
		Conflict: func(p **store.Proposal) uint64 { return table.KeyHash(table.ID((*p).Key)) },
	})
}

// flushClaims sends the claims of a batch in one round trip.
func (s *Store) flushClaims(ctx context.Context, batch []*claimItem) {
	if len(batch) == 1 {
		it := batch[0]
		it.Res, it.Err = s.shortWaitSession.claim(ctx, it.Req)
		if pgwire.Code(it.Err) == pgwire.LockNotAvailable {
			it.Err = errRowLocked
		}
		return
	}
	byID := make(map[pgtype.UUID]*claimItem, len(batch))
	for _, it := range batch {
		it.Err = errSendAlone // until the answer has a row for it
		byID[table.ID(it.Req.Key)] = it
	}
	var a claimAnswer
	var id pgtype.UUID
	to := []any{&a.now, &a.hasStandby, &id, &a.fence, &a.packed}
	err := s.sendBatch(ctx, s.sql.ClaimMany, claimArrays(byID), to, func() error {
		if it := byID[id]; it != nil {
			it.Res, it.Err = a.found(it.Req)
		}
		return nil
	})
	if err != nil {
		failBatch(batch, err)
	}
}

// failBatch ends a batch that failed. If the server has answered, each request can be
// sent alone.
func failBatch[Req, Res any](batch []*coalesce.Item[Req, Res], err error) {
	if (pgwire.Refused(err) || pgwire.EndsConnection(err)) && len(batch) > 1 { // a request that was carried out is recognized by its owner token
		err = errSendAlone
	}
	var none Res
	for _, it := range batch {
		it.Res, it.Err = none, err
	}
}

// sendBatch runs a batch statement in one round trip and one transaction, and calls
// each after it has read a row of the answer into targets. If the connection has other
// planner settings, it sets them first.
func (s *Store) sendBatch(ctx context.Context, sql string, args, targets []any, each func() error) error {
	return s.commits.Run(func() error { return s.sendBatchOnce(ctx, sql, args, targets, each) })
}

func (s *Store) sendBatchOnce(ctx context.Context, sql string, args, targets []any, each func() error) (err error) {
	var b pgx.Batch
	if !s.hasPlannerSettings {
		b.Queue(s.sql.SetPlannerSettings)
	}
	b.Queue(sql, args...)
	res := s.ownPool.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, res.Close()) }()
	if !s.hasPlannerSettings {
		if _, err := res.Exec(); err != nil {
			return err
		}
	}
	rows, err := res.Query()
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, targets, each)
	return err
}

// claim sends one claim.
func (s *session) claim(ctx context.Context, p *store.Proposal) (r reading, err error) {
	args, err := table.ProposalArgs(table.ID(p.Key), p)
	if err != nil {
		return r, err
	}
	args = append(args, s.lockTimeout)
	statement := s.sql.Claim
	if p.State == store.Unknown {
		statement = s.sql.ClaimDoubt
	}
	err = s.retry(func() error {
		for range pgwire.Tries {
			var a claimAnswer
			if err := s.db.QueryRow(ctx, statement, args...).Scan(&a.now, &a.hasStandby, &a.fence, &a.packed); err != nil {
				return err
			}
			if a.fence.Valid || a.packed != nil {
				r, err = a.found(p)
				return err
			}
			// Another transaction has inserted the row after this statement
			// began. The next statement sees it.
		}
		return errNoRow
	})
	return r, err
}

var errNoRow = fmt.Errorf("the record does not exist, but cannot be inserted; check that semel_meta has its row, and that semel_record has no trigger: %w", ErrSchema)

// claimAnswer is a row of the statements Claim and ClaimMany.
type claimAnswer struct {
	now        int64
	hasStandby bool        // commits wait for a synchronous standby
	fence      pgtype.Int8 // of the inserted row
	packed     []byte      // the existing row
}

// found is the result of claim p.
func (c *claimAnswer) found(p *store.Proposal) (r reading, err error) {
	if c.fence.Valid {
		record := p.Insert(store.Time(c.now), 0)
		record.Fence = uint64(c.fence.Int64)
		r.Found = p.Found(&record, store.Time(c.now))
		return r, nil
	}
	var row table.Row
	if err := row.Unpack(c.packed); err != nil {
		return r, err
	}
	f, err := row.Found(p.Key, c.now)
	if err != nil {
		return r, err
	}
	r.Found = p.Found(&f.Record, f.Now)
	r.unconfirmed = r.Won || c.hasStandby && r.Record.IsAnswer()
	return r, nil
}

// swap sends one swap. If it loses, a second statement reads the row, because the
// first one does not see the version that it waited for.
func (s *session) swap(ctx context.Context, seen store.Seen, p *store.Proposal) (r reading, err error) {
	if p.Key != seen.Key {
		return r, errors.New("the proposal and the seen record have different keys")
	}
	args, err := table.ProposalArgs(table.ID(p.Key), p)
	if err != nil {
		return r, err
	}
	args = append(args, p.Restart, int16(seen.State), table.Owner(seen.Owner), table.Fence(seen.Fence), store.Micros(seen.Until), store.Micros(seen.Expires), s.lockTimeout, store.EncodeFormerOwners(p.FormerOwners))
	sql := s.sql
	if p.State != store.Started && p.State != store.Processing {
		sql = s.strict // only a claim may be relaxed
	}
	err = s.retry(func() error {
		var created, updated, fence int64
		var relaxed any
		to := []any{&created, &updated, &fence}
		if sql.Relaxed {
			to = append(to, &relaxed)
		}
		statement, returnsID := sql.SwapOf(seen.State, p.State, p.Restart)
		if returnsID {
			to = append(to, nil)
		}
		err := s.db.QueryRow(ctx, statement, args...).Scan(to...)
		if errors.Is(err, pgx.ErrNoRows) {
			r, err = s.get(ctx, seen.Key)
			if err == nil {
				r.Found = p.Found(&r.Record, r.Now)
				r.unconfirmed = r.unconfirmed || r.Won
			}
			return err
		}
		if err != nil {
			return err
		}
		record := p.Replace(&store.Record{Created: store.Time(created)}, store.Time(updated))
		record.Created, record.Fence = store.Time(created), uint64(fence)
		r.Found, r.unconfirmed = p.Found(&record, store.Time(updated)), false
		return nil
	})
	return r, err
}

// claimRow is a claim in a batch.
type claimRow struct {
	id      pgtype.UUID
	columns table.StateColumns
	item    *claimItem
}

// claimArrays are the parameters of a batch of claims in the order of their ids, so
// that two batches lock the same rows in the same order. If a column has the same
// value in all rows, its array has one element, and the statement repeats it.
func claimArrays(byID map[pgtype.UUID]*claimItem) []any {
	rows := make([]claimRow, 0, len(byID))
	for id, it := range byID {
		e, _ := table.NewStateColumns(it.Req.State, &it.Req.Outcome, it.Req.Lease, it.Req.Keep) // only an outcome can make it fail
		rows = append(rows, claimRow{id, e, it})
	}
	slices.SortFunc(rows, func(a, b claimRow) int { return pgwire.CompareIDs(a.id, b.id) })
	return []any{
		pgwire.Pointers(rows, func(r *claimRow) pgtype.UUID { return r.id }),
		pgwire.Pointers(rows, func(r *claimRow) pgtype.UUID { return table.Owner(r.item.Req.Owner) }),
		pgwire.Once(rows, func(r *claimRow) int16 { return int16(r.item.Req.State) }),
		pgwire.Once(rows, func(r *claimRow) int16 { return int16(r.item.Req.Policy) }),
		pgwire.Once(rows, func(r *claimRow) int64 { return int64(r.item.Req.Attempt) }),
		pgwire.Once(rows, func(r *claimRow) int64 { return r.columns.Until.Int64 }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Key.Operation }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Key.Tenant }),
		pgwire.Texts(rows, func(r *claimRow) string { return r.item.Req.Key.Value }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Holder }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Fingerprint.Alg }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Fingerprint.KeyID }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Fingerprint.Sum }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.item.Req.Error }),
	}
}

// Erase deletes a record with its steps, in one round trip; the bytes stay in the files until
// Scrub. If the record has changed, Erase deletes nothing, and takes two. If there is none, it
// takes three, to confirm what an earlier one has deleted. It implements store.Eraser.
func (j *journal) Erase(ctx context.Context, seen store.Seen) error {
	s := j.store
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return pgwire.Explain("erase", err)
	}
	if err := store.CheckErase(seen); err != nil {
		return err
	}
	err := s.shortWaitSession.erase(ctx, &seen)
	if pgwire.Code(err) == pgwire.LockNotAvailable {
		err = s.waitForLock(ctx, func() error { return s.waitSession.erase(ctx, &seen) })
	}
	if errors.Is(err, store.ErrNotFound) { // an erasure whose commit got no answer may have deleted it
		err = cmp.Or(s.confirm(ctx), err)
	}
	return pgwire.Explain("erase", err)
}

func (s *session) erase(ctx context.Context, seen *store.Seen) error {
	var erased int
	err := s.retry(func() error {
		return s.db.QueryRow(ctx, s.sql.Erase, table.ID(seen.Key), int16(seen.State), table.Owner(seen.Owner), table.Fence(seen.Fence),
			store.Micros(seen.Until), store.Micros(seen.Expires), s.lockTimeout).Scan(&erased)
	})
	if err != nil || erased == 1 {
		return err
	}
	if _, err := s.get(ctx, seen.Key); err != nil {
		return err
	}
	return store.ErrChanged
}
