package table

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

// A statement that is to say whether a row is there gives it as one value, as
// record_send makes it: where there is none, one null is sent and read instead
// of one for each column. It is made of the whole row, because to set up an
// expression of so many columns costs more than all else that a look at a row
// takes that is not there.

// packedOf is the SQL for a row of the table of records. If that has its columns
// in another order than its script gives them, they are spelled out.
func packedColumns(table string, spelled bool) string {
	if !spelled {
		return "record_send(" + table + ")"
	}
	return "record_send(ROW(" + table + "." + strings.Join(Columns, ", "+table+".") + "))"
}

var errPackedFormat = errors.New("the server's record_send gives another format than that of PostgreSQL; use PostgreSQL")

// unpack sets w to a row that came as one value, parts of which it keeps.
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
		&r.lastError, &r.codec, &r.header, &r.body,
	} {
		*to, _ = u.next(-1)
	}
	if u.failed || len(u.rest) > 0 && !more {
		return errPackedFormat
	}
	return nil
}

// Of a row that is as the claim who looks for it would leave it, done and
// without an outcome, keeps gives only what may differ: to pack, send and unpack
// all of it cost a batch of duplicates as much as to find them. keptAs is when a
// row r is one. It is of a query that has c.now.
const (
	isCompleted = `r.state = $3::smallint AND r.format = 1 AND r.policy = $4::smallint AND r.attempt = $5::bigint AND r.until = 0
		AND r.expires > (SELECT now FROM c) AND r.fence >= 0 AND r.code = 0 AND NOT r.gone AND r.codec IS NULL AND r.header IS NULL AND r.body IS NULL
		AND r.operation = $6::bytea AND r.tenant = $7::bytea
		AND r.fingerprint_alg = $8::bytea AND r.fingerprint_key = $9::bytea AND r.last_error = $10::bytea`
	completedColumns = `record_send(ROW(r.fence, r.expires, r.created, r.updated, r.owner, r.holder, r.fingerprint, r.key))`
	completedCount   = 8
)

// keptRow is such a row.
type CompletedRow struct {
	now                              int64 // when it was looked for
	fence, expires, created, updated pgtype.Int8
	owner                            pgtype.UUID
	holder, fingerprint, key         []byte
}

// unpackKept takes it from what keeps gave, parts of which it keeps.
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

// found is its record; p is a claim of its id.
func (r *CompletedRow) Found(p *store.Proposal) store.Found {
	updated, holder, key := store.Time(r.updated.Int64), p.Holder, p.Key
	if string(r.holder) != holder { // else it is at hand
		holder = string(r.holder)
	}
	if string(r.key) != key.Value {
		key.Value = string(r.key)
	}
	return Found(&store.Record{
		Key: key, State: store.Completed, Policy: p.Policy, Fence: uint64(r.fence.Int64), Owner: r.owner.Bytes, Holder: holder, //nolint:gosec // not negative
		Fingerprint: store.Fingerprint{Alg: p.Fingerprint.Alg, KeyID: p.Fingerprint.KeyID, Sum: string(r.fingerprint)},
		Attempt:     p.Attempt, LastError: p.Error, Created: store.Time(r.created.Int64), Updated: updated, Completed: updated,
		Expires: store.Time(r.expires.Int64), Format: store.Format,
	}, p, store.Time(r.now))
}

// unpacker takes one value after the other: the oid of its type, its length,
// or -1 for null, and its bytes.
type unpacker struct {
	rest   []byte
	failed bool
}

// columns takes the number of values, and reports whether there are more than
// this version knows, which a later one has put behind them.
func (u *unpacker) columns() (more bool) {
	if len(u.rest) < 4 || binary.BigEndian.Uint32(u.rest) < uint32(len(Columns)) {
		u.failed, u.rest = true, nil
		return false
	}
	more = binary.BigEndian.Uint32(u.rest) > uint32(len(Columns))
	u.rest = u.rest[4:]
	return more
}

// next is a value of so many bytes; -1: of any number.
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
