package pgstore

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
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
func packedOf(table string, spelled bool) string {
	if !spelled {
		return "record_send(" + table + ")"
	}
	return "record_send(ROW(" + table + "." + strings.Join(columns, ", "+table+".") + "))"
}

// spelled reports whether the columns have to be.
func (s *Store) spelled(ctx context.Context) (bool, error) {
	rows, err := s.own.Query(ctx, `SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $2::text AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, s.opt.Schema, recordTable)
	if err != nil {
		return false, err
	}
	are, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return len(are) < len(columns) || !slices.Equal(are[:len(columns)], columns), err
}

var errPacked = errors.New("the server's record_send gives another format than that of PostgreSQL; use PostgreSQL")

// unpack sets w to a row that came as one value, parts of which it keeps.
func (w *row) unpack(b []byte) error {
	u := unpacker{b: b}
	more := u.columns()
	w.fence, w.until, w.expires, w.created, w.updated = u.int8(), u.int8(), u.int8(), u.int8(), u.int8()
	w.attempt, w.code = u.int8(), u.int8()
	w.id, w.owner = u.uuid(), u.uuid()
	w.state, w.policy, w.format = u.int2(), u.int2(), u.int2()
	w.gone = u.bool()
	for _, to := range []*[]byte{
		&w.operation, &w.tenant, &w.key, &w.holder, &w.fingerprintAlg, &w.fingerprintKey, &w.sum,
		&w.lastError, &w.codec, &w.header, &w.body,
	} {
		*to, _ = u.next(-1)
	}
	if u.bad || len(u.b) > 0 && !more {
		return errPacked
	}
	return nil
}

// Of a row that is as the claim who looks for it would leave it, done and
// without an outcome, keeps gives only what may differ: to pack, send and unpack
// all of it cost a batch of duplicates as much as to find them. keptAs is when a
// row r is one. It is of a query that has c.now.
const (
	keptAs = `r.state = $3::smallint AND r.format = 1 AND r.policy = $4::smallint AND r.attempt = $5::bigint AND r.until = 0
		AND r.expires > (SELECT now FROM c) AND r.fence >= 0 AND r.code = 0 AND NOT r.gone AND r.codec IS NULL AND r.header IS NULL AND r.body IS NULL
		AND r.operation = $6::bytea AND r.tenant = $7::bytea
		AND r.fingerprint_alg = $8::bytea AND r.fingerprint_key = $9::bytea AND r.last_error = $10::bytea`
	keptPacked  = `record_send(ROW(r.fence, r.expires, r.created, r.updated, r.owner, r.holder, r.fingerprint, r.key))`
	keptColumns = 8
)

// keptRow is such a row.
type keptRow struct {
	now                              int64 // when it was looked for
	fence, expires, created, updated pgtype.Int8
	owner                            pgtype.UUID
	holder, sum, key                 []byte
}

// unpackKept takes it from what keeps gave, parts of which it keeps.
func unpackKept(now int64, b []byte) (*keptRow, error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != keptColumns {
		return nil, errPacked
	}
	u := unpacker{b: b[4:]}
	k := &keptRow{now: now, fence: u.int8(), expires: u.int8(), created: u.int8(), updated: u.int8(), owner: u.uuid()}
	k.holder, _ = u.next(-1)
	k.sum, _ = u.next(-1)
	k.key, _ = u.next(-1)
	if u.bad || len(u.b) > 0 {
		return nil, errPacked
	}
	return k, nil
}

// found is its record; p is a claim of its id.
func (k *keptRow) found(p *store.Proposal) store.Found {
	updated, holder, key := store.Time(k.updated.Int64), p.Holder, p.Key
	if string(k.holder) != holder { // else it is at hand
		holder = string(k.holder)
	}
	if string(k.key) != key.Value {
		key.Value = string(k.key)
	}
	return found(&store.Record{
		Key: key, State: store.Completed, Policy: p.Policy, Fence: uint64(k.fence.Int64), Owner: k.owner.Bytes, Holder: holder, //nolint:gosec // not negative
		Fingerprint: store.Fingerprint{Alg: p.Fingerprint.Alg, KeyID: p.Fingerprint.KeyID, Sum: string(k.sum)},
		Attempt:     p.Attempt, LastError: p.Error, Created: store.Time(k.created.Int64), Updated: updated, Completed: updated,
		Expires: store.Time(k.expires.Int64), Format: store.Format,
	}, p, store.Time(k.now))
}

// unpacker takes one value after the other: the oid of its type, its length,
// or -1 for null, and its bytes.
type unpacker struct {
	b   []byte
	bad bool
}

// columns takes the number of values, and reports whether there are more than
// this version knows, which a later one has put behind them.
func (u *unpacker) columns() (more bool) {
	if len(u.b) < 4 || binary.BigEndian.Uint32(u.b) < uint32(len(columns)) {
		u.bad, u.b = true, nil
		return false
	}
	more = binary.BigEndian.Uint32(u.b) > uint32(len(columns))
	u.b = u.b[4:]
	return more
}

// next is a value of so many bytes; -1: of any number.
func (u *unpacker) next(size int) (value []byte, is bool) {
	if len(u.b) < 8 {
		u.bad = true
		return nil, false
	}
	n := int(int32(binary.BigEndian.Uint32(u.b[4:]))) //nolint:gosec // -1 is null
	u.b = u.b[8:]
	if n == -1 {
		return nil, false
	}
	if n < 0 || n > len(u.b) || size >= 0 && n != size {
		u.bad, u.b = true, nil
		return nil, false
	}
	value, u.b = u.b[:n:n], u.b[n:]
	return value, true
}

func (u *unpacker) uuid() (to pgtype.UUID) {
	if b, is := u.next(16); is {
		to = pgtype.UUID{Bytes: [16]byte(b), Valid: true}
	}
	return to
}

func (u *unpacker) int2() (to pgtype.Int2) {
	if b, is := u.next(2); is {
		to = pgtype.Int2{Int16: int16(binary.BigEndian.Uint16(b)), Valid: true} //nolint:gosec // its two's complement
	}
	return to
}

func (u *unpacker) int8() (to pgtype.Int8) {
	if b, is := u.next(8); is {
		to = pgtype.Int8{Int64: int64(binary.BigEndian.Uint64(b)), Valid: true} //nolint:gosec // its two's complement
	}
	return to
}

func (u *unpacker) bool() (to pgtype.Bool) {
	if b, is := u.next(1); is {
		to = pgtype.Bool{Bool: b[0] != 0, Valid: true}
	}
	return to
}
