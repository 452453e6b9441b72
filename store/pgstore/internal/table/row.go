package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

// Row is a row of semel_record, in the order of Columns. Each field may be null,
// because a statement may have no row to return.
type Row struct {
	ID, Owner                               pgtype.UUID
	State, Policy, Format                   pgtype.Int2
	Fence, Until, Expires, Created, Updated pgtype.Int8
	Attempt, Code                           pgtype.Int8
	Gone                                    pgtype.Bool
	Operation, Tenant, Key, Holder          []byte
	fingerprintAlg, fingerprintKey, sum     []byte
	lastError, codec, header, body          []byte
	formerOwners                            []byte
}

// Columns are the columns of semel_record, in the order of the migration.
var Columns = []string{
	"fence", "until", "expires", "created", "updated", "attempt", "code", "id", "owner", "state", "policy", "format", "gone",
	"operation", "tenant", "key", "holder", "fingerprint_alg", "fingerprint_key", "fingerprint", "last_error", "codec", "header", "body", "former_owners",
}

// Fields appends the scan targets for the columns to before.
func (r *Row) Fields(before ...any) []any {
	return append(before, &r.Fence, &r.Until, &r.Expires, &r.Created, &r.Updated, &r.Attempt, &r.Code,
		&r.ID, &r.Owner, &r.State, &r.Policy, &r.Format, &r.Gone, &r.Operation, &r.Tenant, &r.Key, &r.Holder, &r.fingerprintAlg, &r.fingerprintKey, &r.sum,
		&r.lastError, &r.codec, &r.header, &r.body, &r.formerOwners)
}

// Record is the record of the row, or store.ErrCorrupt.
func (r *Row) Record() (store.Record, error) {
	corrupt := func(column string, value any, why string) (store.Record, error) {
		return store.Record{}, fmt.Errorf("%w: row %x of semel_record: %s is %v; %s", store.ErrCorrupt, r.ID.Bytes, column, value, why)
	}
	key := store.Key{Operation: string(r.Operation), Tenant: string(r.Tenant), Value: string(r.Key)}
	header, err := store.DecodeHeader(r.header)
	owners, ownersErr := store.DecodeFormerOwners(r.formerOwners)
	switch {
	case r.Format.Int16 != store.Format:
		return corrupt("format", r.Format.Int16, fmt.Sprintf("this version reads %d; a newer one may have written it", store.Format))
	case r.ID != ID(key):
		return corrupt("id", "that of another key", "it is not that of its operation, tenant and key")
	case r.State.Int16 < int16(store.Started) || r.State.Int16 > int16(store.Unknown):
		return corrupt("state", r.State.Int16, "it must be 1 to 6")
	case r.Policy.Int16 < int16(store.Retry) || r.Policy.Int16 > int16(store.Park):
		return corrupt("policy", r.Policy.Int16, "it must be 0 or 1")
	case r.Fence.Int64 < 0:
		return corrupt("fence", r.Fence.Int64, "it must not be negative")
	case int64(int(r.Attempt.Int64)) != r.Attempt.Int64:
		return corrupt("attempt", r.Attempt.Int64, "it is too large")
	case int64(int(r.Code.Int64)) != r.Code.Int64:
		return corrupt("code", r.Code.Int64, "it is too large")
	case err != nil:
		return corrupt("header", fmt.Sprintf("%d bytes", len(r.header)), err.Error())
	case ownersErr != nil:
		return store.Record{}, fmt.Errorf("row %x of semel_record: %w", r.ID.Bytes, ownersErr)
	}
	record := store.Record{
		Key: key, State: store.State(r.State.Int16), Policy: store.Policy(r.Policy.Int16), Fence: uint64(r.Fence.Int64), Owner: r.Owner.Bytes,
		Holder: string(r.Holder), Attempt: int(r.Attempt.Int64), Until: store.Time(r.Until.Int64), LastError: string(r.lastError),
		Fingerprint: store.Fingerprint{Alg: string(r.fingerprintAlg), KeyID: string(r.fingerprintKey), Sum: string(r.sum)},
		Outcome:     store.Outcome{Code: int(r.Code.Int64), Header: header, Body: r.body, Codec: string(r.codec), Gone: r.Gone.Bool},
		Created:     store.Time(r.Created.Int64), Updated: store.Time(r.Updated.Int64), Expires: store.Time(r.Expires.Int64),
		Format: int(r.Format.Int16), FormerOwners: owners,
	}
	if record.State.Terminal() {
		record.Completed = record.Updated // a terminal record does not change
	}
	return record, nil
}

// Found is the record of the row, which was read for key at time now.
func (r *Row) Found(key store.Key, now int64) (store.Found, error) {
	record, err := r.Record()
	if err == nil && record.Key != key {
		err = errCollision
	}
	if err != nil {
		return store.Found{}, err
	}
	return store.Found{Record: record, Now: store.Time(now)}, nil
}

// errCollision: two keys have the same id. This does not happen by chance. A caller
// that constructs such a pair blocks only its own second key.
var errCollision = fmt.Errorf("%w: another key has the same id; use another key", store.ErrCorrupt)

// ID is the id of a key. Another key may have the same id, so readers of a row compare
// the key in it.
func ID(k store.Key) pgtype.UUID { return pgtype.UUID{Bytes: k.ID(), Valid: true} }

// KeyHash is a number for a key from the random half of its id. Equal keys have equal
// numbers.
func KeyHash(id pgtype.UUID) uint64 { return binary.LittleEndian.Uint64(id.Bytes[8:]) }

// Owner is the value of an owner column.
func Owner(o store.Owner) pgtype.UUID { return pgtype.UUID{Bytes: o, Valid: true} }

// Micros is a duration in microseconds, rounded down as store.Time rounds. It is null
// unless valid.
func Micros(d time.Duration, valid bool) pgtype.Int8 {
	us := d.Microseconds()
	if d < 0 && d%time.Microsecond != 0 {
		us--
	}
	return pgtype.Int8{Int64: us, Valid: valid}
}

// StateColumns are the columns that depend on the state.
type StateColumns struct {
	Until, Expires pgtype.Int8 // relative to the store's clock
	Code           int64
	Gone           bool
	Codec          []byte
	Header, Body   []byte
}

// NewStateColumns follows the rules of package store for settlements and proposals.
func NewStateColumns(s store.State, o *store.Outcome, wait, keep time.Duration) (StateColumns, error) {
	columns := StateColumns{
		Until: Micros(wait, s == store.Started || s == store.Processing || s == store.Released),
	}
	switch s {
	case store.Released:
		columns.Expires = Micros(max(wait, keep), true)
	case store.Completed, store.Failed:
		columns.Expires = Micros(keep, true)
		header, err := store.EncodeHeader(o.Header)
		if err != nil {
			return columns, fmt.Errorf("encode the outcome's header: %w", err)
		}
		if n := len(header) + len(o.Body); n > MaxOutcome {
			return columns, fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, n, MaxOutcome)
		}
		columns.Code, columns.Gone, columns.Codec, columns.Header = int64(o.Code), o.Gone, OrNull([]byte(o.Codec)), header
		columns.Body = OrNull(o.Body) // an empty and a missing body are the same
	case store.Started, store.Processing, store.Unknown:
	}
	return columns, nil
}

// MaxOutcome is well below the limit of a protocol message.
const MaxOutcome = 256 << 20

// OrNull is b, or null if b is empty.
func OrNull(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// Bytes are the bytes of some texts, or null if there are none.
func Bytes(texts []string) (all [][]byte) {
	for _, t := range texts {
		all = append(all, []byte(t))
	}
	return all
}

// ProposalArgs are the parameters of statements that write a whole row. The slice has
// capacity for a few more.
func ProposalArgs(id pgtype.UUID, p *store.Proposal) ([]any, error) {
	e, err := NewStateColumns(p.State, &p.Outcome, p.Lease, p.Keep)
	if err != nil {
		return nil, err
	}
	// One allocation for the parameters that are passed by address, and one for
	// all texts.
	k, f := &p.Key, &p.Fingerprint
	all := &struct {
		id, owner      pgtype.UUID
		until, expires pgtype.Int8
		code           pgtype.Int8
		args           [maxArgs]any
	}{id, Owner(p.Owner), e.Until, e.Expires, pgtype.Int8{Int64: e.Code, Valid: true}, [maxArgs]any{}}
	b := make([]byte, 0, len(k.Operation)+len(k.Tenant)+len(k.Value)+len(p.Holder)+len(f.Alg)+len(f.KeyID)+len(f.Sum)+len(p.Error))
	text := func(s string) any {
		if s == "" {
			return noText
		}
		start := len(b)
		b = append(b, s...)
		return b[start:]
	}
	return append(all.args[:0],
		&all.id, &all.owner, int16(p.State), int16(p.Policy), int64(p.Attempt), &all.until, &all.expires,
		text(k.Operation), text(k.Tenant), text(k.Value), text(p.Holder), text(f.Alg), text(f.KeyID), text(f.Sum), text(p.Error),
		&all.code, e.Gone, e.Codec, e.Header, e.Body,
	), nil
}

// maxArgs is the largest number of parameters of a statement that writes a row.
const maxArgs = 28

var noText any = []byte{}

// Fence is a fencing token as a column holds it. A token that does not fit matches no
// row.
func Fence(f uint64) int64 {
	if f > math.MaxInt64 {
		return -1
	}
	return int64(f)
}

// hasStandby is the SQL expression that is true if commits wait for a synchronous
// standby.
const hasStandby = "(current_setting('synchronous_standby_names') <> '')"

// WriteBarrier is a write whose commit waits for the disk, and for the synchronous
// standby if there is one. Both then have all that was visible when it began. It
// changes no table.
const WriteBarrier = `SELECT pg_logical_emit_message(true, 'semel', '')`
