package table

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

// Statements that may find no row return a row as one value, in the format of
// record_send. If there is no row, the server then sends one null instead of one for
// each column. The value contains the whole row, because setting up an expression
// with so many columns would cost more than the rest of a lookup that finds nothing.

// packedColumns is the SQL for a row of the table as one value. If the table has its
// columns in another order than the migration, each column is named.
func packedColumns(table string, spelled bool) string {
	if !spelled {
		return "record_send(" + table + ")"
	}
	return "record_send(ROW(" + table + "." + strings.Join(Columns, ", "+table+".") + "))"
}

var errPackedFormat = errors.New("the server's record_send does not return PostgreSQL's format; use PostgreSQL")

// Unpack sets r to a packed row. It keeps parts of b.
func (r *Row) Unpack(b []byte) error {
	u := unpacker{rest: b}
	more := u.columns()
	r.Fence, r.Until, r.Expires, r.Created, r.Updated = u.int8(), u.int8(), u.int8(), u.int8(), u.int8()
	r.Attempt, r.Code = u.int8(), u.int8()
	r.ID, r.Owner = u.uuid(), u.uuid()
	r.State, r.Policy, r.Format = u.int2(), u.int2(), u.int2()
	r.Gone = u.bool()
	for _, to := range []*[]byte{
		&r.Operation, &r.Tenant, &r.Key, &r.Holder, &r.fingerprintAlg, &r.fingerprintKey, &r.sum,
		&r.lastError, &r.codec, &r.header, &r.body, &r.formerOwners,
	} {
		*to, _ = u.next(-1)
	}
	if u.failed || len(u.rest) > 0 && !more {
		return errPackedFormat
	}
	return nil
}

// FindCompleted returns only the columns that may differ from the claim. To pack, send
// and unpack whole rows would cost a batch of duplicates as much as finding them.
// isCompleted is the condition for a row r. The query around it must have c.now.
const (
	isCompleted = `r.state = $3::smallint AND r.format = 1 AND r.policy = $4::smallint AND r.attempt = $5::bigint AND r.until = 0
		AND r.expires > (SELECT now FROM c) AND r.fence >= 0 AND r.code = 0 AND NOT r.gone AND r.codec IS NULL AND r.header IS NULL AND r.body IS NULL
		AND r.operation = $6::bytea AND r.tenant = $7::bytea
		AND r.fingerprint_alg = $8::bytea AND r.fingerprint_key = $9::bytea AND r.last_error = $10::bytea`
	completedColumns = `record_send(ROW(r.fence, r.expires, r.created, r.updated, r.owner, r.holder, r.fingerprint, r.key))`
	completedCount   = 8
)

// CompletedRow has the columns of a completed record without an outcome that may
// differ from the claim that looks for it.
type CompletedRow struct {
	now                              int64 // time of the lookup
	fence, expires, created, updated pgtype.Int8
	owner                            pgtype.UUID
	holder, fingerprint, key         []byte
}

// UnpackCompleted reads the answer of the statement FindCompleted. It keeps parts of
// b.
func UnpackCompleted(now int64, b []byte) (*CompletedRow, error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != completedCount {
		return nil, errPackedFormat
	}
	u := unpacker{rest: b[4:]}
	r := &CompletedRow{now: now, fence: u.int8(), expires: u.int8(), created: u.int8(), updated: u.int8(), owner: u.uuid()}
	r.holder, _ = u.next(-1)
	r.fingerprint, _ = u.next(-1)
	r.key, _ = u.next(-1)
	if u.failed || len(u.rest) > 0 {
		return nil, errPackedFormat
	}
	return r, nil
}

// Found is the record of the row; p is a claim of the same id.
func (r *CompletedRow) Found(p *store.Proposal) store.Found {
	updated, holder, key := store.Time(r.updated.Int64), p.Holder, p.Key
	if string(r.holder) != holder { // otherwise reuse the string of the proposal
		holder = string(r.holder)
	}
	if string(r.key) != key.Value {
		key.Value = string(r.key)
	}
	return p.Found(&store.Record{
		Key: key, State: store.Completed, Policy: p.Policy, Fence: uint64(r.fence.Int64), Owner: r.owner.Bytes, Holder: holder, //nolint:gosec // not negative
		Fingerprint: store.Fingerprint{Alg: p.Fingerprint.Alg, KeyID: p.Fingerprint.KeyID, Sum: string(r.fingerprint)},
		Attempt:     p.Attempt, LastError: p.Error, Created: store.Time(r.created.Int64), Updated: updated, Completed: updated,
		Expires: store.Time(r.expires.Int64), Format: store.Format,
	}, store.Time(r.now))
}

// unpacker reads the values of a packed row. Each has the oid of its type, its length
// (-1 for null), and its bytes.
type unpacker struct {
	rest   []byte
	failed bool
}

// columns reads the number of values. more reports whether a later version has added
// columns at the end.
func (u *unpacker) columns() (more bool) {
	if len(u.rest) < 4 || binary.BigEndian.Uint32(u.rest) < uint32(len(Columns)) {
		u.failed, u.rest = true, nil
		return false
	}
	more = binary.BigEndian.Uint32(u.rest) > uint32(len(Columns))
	u.rest = u.rest[4:]
	return more
}

// next reads a value of size bytes; -1: of any size.
func (u *unpacker) next(size int) (value []byte, ok bool) {
	if len(u.rest) < 8 {
		u.failed = true
		return nil, false
	}
	n := int(int32(binary.BigEndian.Uint32(u.rest[4:]))) //nolint:gosec // -1 is null
	u.rest = u.rest[8:]
	if n == -1 {
		return nil, false
	}
	if n < 0 || n > len(u.rest) || size >= 0 && n != size {
		u.failed, u.rest = true, nil
		return nil, false
	}
	value, u.rest = u.rest[:n:n], u.rest[n:]
	return value, true
}

func (u *unpacker) uuid() (value pgtype.UUID) {
	if b, ok := u.next(16); ok {
		value = pgtype.UUID{Bytes: [16]byte(b), Valid: true}
	}
	return value
}

func (u *unpacker) int2() (value pgtype.Int2) {
	if b, ok := u.next(2); ok {
		value = pgtype.Int2{Int16: int16(binary.BigEndian.Uint16(b)), Valid: true} //nolint:gosec // its two's complement
	}
	return value
}

func (u *unpacker) int8() (value pgtype.Int8) {
	if b, ok := u.next(8); ok {
		value = pgtype.Int8{Int64: int64(binary.BigEndian.Uint64(b)), Valid: true} //nolint:gosec // its two's complement
	}
	return value
}

func (u *unpacker) bool() (value pgtype.Bool) {
	if b, ok := u.next(1); ok {
		value = pgtype.Bool{Bool: b[0] != 0, Valid: true}
	}
	return value
}
