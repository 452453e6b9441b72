package pgstore

import (
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
	claimLane = coalesce.Lane[*store.Proposal, store.Found]
	claimItem = coalesce.Item[*store.Proposal, store.Found]
)

// errAlone: a batch was refused, whole, and nothing in it changed. Each of it
// goes by itself, on its caller's goroutine, so that a row which is locked, or
// cannot be written, holds up nobody else.
var errAlone = errors.New("not in a batch")

// errLocked: the row is locked. Its caller waits, but not in the lane.
var errLocked = errors.New("locked")

// company is coalesce.Options.Company: a batch costs the server and the client by
// itself as much as twenty or thirty requests in it.
const company = 16

// relaxedFlushers is how many batches of relaxed claims are in flight at most.
// Their commits wait for no disk, so more would only be less full. With one
// less, one that hangs would hold up all.
const relaxedFlushers = 2

func (s *Store) newClaimLane() *claimLane {
	flushers := s.opt.Flushers
	if s.opt.RelaxedClaims {
		flushers = min(flushers, relaxedFlushers)
	}
	return coalesce.New(s.flushClaims, &coalesce.Options[*store.Proposal]{
		MaxBatch: s.opt.MaxBatch, Company: company, Flushers: flushers,
		// Equal keys must not share a statement.
		Conflict: func(p **store.Proposal) uint64 { return table.KeyHash(table.ID((*p).Key)) },
	})
}

// flushClaims sends the claims of a batch in one round trip.
func (s *Store) flushClaims(ctx context.Context, batch []*claimItem) {
	if len(batch) == 1 {
		it := batch[0]
		it.Res, it.Err = s.quick.claim(ctx, it.Req)
		if pgwire.Code(it.Err) == pgwire.LockNotAvailable {
			it.Err = errLocked
		}
		return
	}
	byID := make(map[pgtype.UUID]*claimItem, len(batch))
	for _, it := range batch {
		it.Err = errAlone // if there is no answer for it
		byID[table.ID(it.Req.Key)] = it
	}
	var a answer
	var id pgtype.UUID
	to := []any{&a.now, &id, &a.fence, &a.packed}
	err := s.sendBatch(ctx, s.sql.ClaimMany, claimArrays(byID), func(rows pgx.Rows) error {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if it := byID[id]; it != nil {
			it.Res, it.Err = a.to(it.Req)
		}
		return nil
	})
	if err != nil {
		failBatch(batch, err)
	}
}

// failBatch answers a batch that failed. What the server refused was not
// carried out, and can be sent again one by one.
func failBatch[Req, Res any](batch []*coalesce.Item[Req, Res], err error) {
	if pgwire.Refused(err) && len(batch) > 1 {
		err = errAlone
	}
	var none Res
	for _, it := range batch {
		it.Res, it.Err = none, err
	}
}

// sendBatch runs a batch statement, behind its guard if it needs one, in one
// round trip and one transaction.
func (s *Store) sendBatch(ctx context.Context, sql string, args []any, each func(pgx.Rows) error) (err error) {
	var b pgx.Batch
	if !s.steady {
		b.Queue(s.sql.SetPlannerSettings)
	}
	b.Queue(sql, args...)
	res := s.own.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, res.Close()) }()
	if !s.steady {
		if _, err := res.Exec(); err != nil {
			return err
		}
	}
	rows, err := res.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// claim sends one claim.
func (s *session) claim(ctx context.Context, p *store.Proposal) (f store.Found, err error) {
	args, err := table.ProposalArgs(table.ID(p.Key), p)
	if err != nil {
		return f, err
	}
	args = append(args, s.wait)
	err = s.retry(func() error {
		for range pgwire.Tries {
			var a answer
			if err := s.db.QueryRow(ctx, s.sql.Claim, args...).Scan(&a.now, &a.fence, &a.packed); err != nil {
				return err
			}
			if a.fence.Valid || a.packed != nil {
				f, err = a.to(p)
				return err
			}
			// Inserted by another after this statement began: it is there for
			// the next statement to see.
		}
		return errNeither
	})
	return f, err
}

var errNeither = fmt.Errorf("a record is neither there nor can it be inserted; is the row of semel_meta gone, or a trigger on semel_record? %w", ErrSchema)

// answer is what a statement says of a claim.
type answer struct {
	now    int64
	fence  pgtype.Int8 // of the row that it inserted
	packed []byte      // the row that was there
}

// to is what the claim p found.
func (a *answer) to(p *store.Proposal) (store.Found, error) {
	if a.fence.Valid {
		r := p.Insert(store.Time(a.now), 0)
		r.Fence = uint64(a.fence.Int64)
		return table.Found(&r, p, store.Time(a.now)), nil
	}
	var w table.Row
	if err := w.Unpack(a.packed); err != nil {
		return store.Found{}, err
	}
	f, err := w.Found(p.Key, a.now)
	if err != nil {
		return f, err
	}
	return table.Found(&f.Record, p, f.Now), nil
}

// swap sends one swap. The row that it lost to is read in a statement of its
// own: this one does not see what it waited for.
func (s *session) swap(ctx context.Context, seen store.Seen, p *store.Proposal) (f store.Found, err error) {
	if p.Key != seen.Key {
		return f, errors.New("the proposal is for another key than what was seen")
	}
	args, err := table.ProposalArgs(table.ID(p.Key), p)
	if err != nil {
		return f, err
	}
	args = append(args, p.Restart, int16(seen.State), table.Owner(seen.Owner), table.Fence(seen.Fence), store.Micros(seen.Until), store.Micros(seen.Expires), s.wait)
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
		err := s.db.QueryRow(ctx, sql.Swap, args...).Scan(to...)
		if errors.Is(err, pgx.ErrNoRows) {
			f, err = s.get(ctx, seen.Key)
			if err == nil {
				f = table.Found(&f.Record, p, f.Now)
			}
			return err
		}
		if err != nil {
			return err
		}
		r := p.Replace(&store.Record{Created: store.Time(created)}, store.Time(updated))
		r.Created, r.Fence = store.Time(created), uint64(fence)
		f = table.Found(&r, p, store.Time(updated))
		return nil
	})
	return f, err
}

// claimRow is a claim in a batch.
type claimRow struct {
	id  pgtype.UUID
	end table.StateColumns
	it  *claimItem
}

// claimArrays are the parameters of a batch of claims in the order of their
// ids: two batches meet the same rows in the same order. A column that is the
// same in all rows has one value: the statement repeats it.
func claimArrays(byID map[pgtype.UUID]*claimItem) []any {
	rows := make([]claimRow, 0, len(byID))
	for id, it := range byID {
		e, _ := table.NewStateColumns(it.Req.State, &it.Req.Outcome, it.Req.Lease, it.Req.Keep) // fails for outcomes only
		rows = append(rows, claimRow{id, e, it})
	}
	slices.SortFunc(rows, func(a, b claimRow) int { return pgwire.CompareIDs(a.id, b.id) })
	return []any{
		pgwire.Pointers(rows, func(r *claimRow) pgtype.UUID { return r.id }),
		pgwire.Pointers(rows, func(r *claimRow) pgtype.UUID { return table.Owner(r.it.Req.Owner) }),
		pgwire.Once(rows, func(r *claimRow) int16 { return int16(r.it.Req.State) }),
		pgwire.Once(rows, func(r *claimRow) int16 { return int16(r.it.Req.Policy) }),
		pgwire.Once(rows, func(r *claimRow) int64 { return int64(r.it.Req.Attempt) }),
		pgwire.Once(rows, func(r *claimRow) int64 { return r.end.Until.Int64 }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Key.Operation }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Key.Tenant }),
		pgwire.Texts(rows, func(r *claimRow) string { return r.it.Req.Key.Value }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Holder }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Fingerprint.Alg }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Fingerprint.KeyID }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Fingerprint.Sum }),
		pgwire.TextOnce(rows, func(r *claimRow) string { return r.it.Req.Error }),
	}
}
