package pgstore

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

// row is a row of semel_record, in the order of columns. All may be null, for
// a statement that has no row to give.
type row struct {
	id, owner                               pgtype.UUID
	state, policy, format                   pgtype.Int2
	fence, until, expires, created, updated pgtype.Int8
	attempt, code                           pgtype.Int8
	gone                                    pgtype.Bool
	operation, tenant, key, holder          []byte
	fingerprintAlg, fingerprintKey, sum     []byte
	lastError, codec, header, body          []byte
}

// columns of semel_record, in the order of its script.
var columns = []string{
	"fence", "until", "expires", "created", "updated", "attempt", "code", "id", "owner", "state", "policy", "format", "gone",
	"operation", "tenant", "key", "holder", "fingerprint_alg", "fingerprint_key", "fingerprint", "last_error", "codec", "header", "body",
}

// fields are where a row is scanned to, after what is in before.
func (w *row) fields(before ...any) []any {
	return append(before, &w.fence, &w.until, &w.expires, &w.created, &w.updated, &w.attempt, &w.code,
		&w.id, &w.owner, &w.state, &w.policy, &w.format, &w.gone, &w.operation, &w.tenant, &w.key, &w.holder, &w.fingerprintAlg, &w.fingerprintKey, &w.sum,
		&w.lastError, &w.codec, &w.header, &w.body)
}

// record is what the row keeps, or store.ErrCorrupt.
func (w *row) record() (store.Record, error) {
	corrupt := func(column string, value any, why string) (store.Record, error) {
		return store.Record{}, fmt.Errorf("%w: row %x of semel_record: %s is %v; %s", store.ErrCorrupt, w.id.Bytes, column, value, why)
	}
	key := store.Key{Operation: string(w.operation), Tenant: string(w.tenant), Value: string(w.key)}
	header, err := store.DecodeHeader(w.header)
	switch {
	case w.format.Int16 != store.Format:
		return corrupt("format", w.format.Int16, fmt.Sprintf("this version reads %d; a newer one may have written it", store.Format))
	case w.id != idOf(key):
		return corrupt("id", "that of another key", "it is not that of its operation, tenant and key")
	case w.state.Int16 < int16(store.Started) || w.state.Int16 > int16(store.Unknown):
		return corrupt("state", w.state.Int16, "it must be 1 to 6")
	case w.policy.Int16 < int16(store.Retry) || w.policy.Int16 > int16(store.Park):
		return corrupt("policy", w.policy.Int16, "it must be 0 or 1")
	case w.fence.Int64 < 0:
		return corrupt("fence", w.fence.Int64, "it must not be negative")
	case int64(int(w.attempt.Int64)) != w.attempt.Int64:
		return corrupt("attempt", w.attempt.Int64, "it is too large")
	case int64(int(w.code.Int64)) != w.code.Int64:
		return corrupt("code", w.code.Int64, "it is too large")
	case err != nil:
		return corrupt("header", fmt.Sprintf("%d bytes", len(w.header)), err.Error())
	}
	r := store.Record{
		Key: key, State: store.State(w.state.Int16), Policy: store.Policy(w.policy.Int16), Fence: uint64(w.fence.Int64), Owner: w.owner.Bytes,
		Holder: string(w.holder), Attempt: int(w.attempt.Int64), Until: store.Time(w.until.Int64), LastError: string(w.lastError),
		Fingerprint: store.Fingerprint{Alg: string(w.fingerprintAlg), KeyID: string(w.fingerprintKey), Sum: string(w.sum)},
		Outcome:     store.Outcome{Code: int(w.code.Int64), Header: header, Body: w.body, Codec: string(w.codec), Gone: w.gone.Bool},
		Created:     store.Time(w.created.Int64), Updated: store.Time(w.updated.Int64), Expires: store.Time(w.expires.Int64),
		Format: int(w.format.Int16),
	}
	if r.State.Terminal() {
		r.Completed = r.Updated // a terminal record does not change
	}
	return r, nil
}

// idOf is a key's id. That others have it, too, is found when a row is read, for
// the key in it is compared.
func idOf(k store.Key) pgtype.UUID { return pgtype.UUID{Bytes: k.ID(), Valid: true} }

// numberOf is of the half of an id that is always of the digest. It is equal for
// equal keys, and next to never for others.
func numberOf(id pgtype.UUID) uint64 { return binary.LittleEndian.Uint64(id.Bytes[8:]) }

func ownerOf(o store.Owner) pgtype.UUID { return pgtype.UUID{Bytes: o, Valid: true} }

// after is a duration in microseconds, rounded as store.Time rounds the time
// that is so far from a whole microsecond; null if there is no such time.
func after(d time.Duration, is bool) pgtype.Int8 {
	us := d.Microseconds()
	if d < 0 && d%time.Microsecond != 0 {
		us--
	}
	return pgtype.Int8{Int64: us, Valid: is}
}

// end is how the fields that depend on the state are set.
type end struct {
	until, expires pgtype.Int8 // from the store's clock on
	code           int64
	gone           bool
	codec          []byte
	header, body   []byte
}

// newEnd mirrors what package store does with a settlement or a proposal.
func newEnd(s store.State, o *store.Outcome, wait, keep time.Duration) (end, error) {
	e := end{
		until: after(wait, s == store.Started || s == store.Processing || s == store.Released),
	}
	switch s {
	case store.Released:
		e.expires = after(max(wait, keep), true)
	case store.Completed, store.Failed:
		e.expires = after(keep, true)
		header, err := store.EncodeHeader(o.Header)
		if err != nil {
			return e, fmt.Errorf("encode the outcome's header: %w", err)
		}
		if n := len(header) + len(o.Body); n > maxOutcome {
			return e, fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, n, maxOutcome)
		}
		e.code, e.gone, e.codec, e.header = int64(o.Code), o.Gone, orNull([]byte(o.Codec)), header
		e.body = orNull(o.Body) // no different for those who replay it
	case store.Started, store.Processing, store.Unknown:
	}
	return e, nil
}

// maxOutcome is well below what a message to the server can hold.
const maxOutcome = 256 << 20

func orNull(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// proposalArgs are those of the statements that write a whole row, with room
// for more behind them.
func proposalArgs(id pgtype.UUID, p *store.Proposal) ([]any, error) {
	e, err := newEnd(p.State, &p.Outcome, p.Lease, p.Keep)
	if err != nil {
		return nil, err
	}
	// All that goes by its address, and the texts behind each other, to be
	// allocated at once.
	k, f := &p.Key, &p.Fingerprint
	all := &struct {
		id, owner      pgtype.UUID
		until, expires pgtype.Int8
		code           pgtype.Int8
		args           [maxArgs]any
	}{id, ownerOf(p.Owner), e.until, e.expires, pgtype.Int8{Int64: e.code, Valid: true}, [maxArgs]any{}}
	b := make([]byte, 0, len(k.Operation)+len(k.Tenant)+len(k.Value)+len(p.Holder)+len(f.Alg)+len(f.KeyID)+len(f.Sum)+len(p.Error))
	text := func(s string) any {
		if s == "" {
			return noText
		}
		at := len(b)
		b = append(b, s...)
		return b[at:]
	}
	return append(all.args[:0],
		&all.id, &all.owner, int16(p.State), int16(p.Policy), int64(p.Attempt), &all.until, &all.expires,
		text(k.Operation), text(k.Tenant), text(k.Value), text(p.Holder), text(f.Alg), text(f.KeyID), text(f.Sum), text(p.Error),
		&all.code, e.gone, e.codec, e.header, e.body,
	), nil
}

// maxArgs is the most of a statement that writes a row.
const maxArgs = 28

var noText any = []byte{}

// fenceOf is a fence as a column holds it; one that does not fit matches none.
func fenceOf(f uint64) int64 {
	if f > math.MaxInt64 {
		return -1
	}
	return int64(f)
}

// found is the record as the sender of p sees it.
func found(r *store.Record, p *store.Proposal, now time.Time) store.Found {
	won := p.Owner != store.Owner{} && r.Owner == p.Owner && r.State == p.State
	return store.Found{Record: *r, Won: won, Now: now}
}
