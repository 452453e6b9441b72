package pgstore

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// A statement that is to say whether a row is there gives it as one value, as
// record_send makes it of columns: where there is none, one null is sent and
// read instead of one for each column.

// packedOf is the SQL for a row of columns behind a prefix.
func packedOf(prefix string) string {
	return "record_send(ROW(" + prefix + strings.Join(columns, ", "+prefix) + "))"
}

var errPacked = errors.New("the server's record_send gives another format than that of PostgreSQL; use PostgreSQL")

// unpack sets w to a row that came as one value, parts of which it keeps.
func (w *row) unpack(b []byte) error {
	u := unpacker{b: b}
	u.columns()
	w.id, w.owner = u.uuid(), u.uuid()
	w.state, w.policy, w.format = u.int2(), u.int2(), u.int2()
	w.fence, w.until, w.expires, w.created, w.updated = u.int8(), u.int8(), u.int8(), u.int8(), u.int8()
	w.attempt, w.code = u.int8(), u.int8()
	w.gone = u.bool()
	for _, to := range []*[]byte{
		&w.operation, &w.tenant, &w.key, &w.holder, &w.fingerprintAlg, &w.fingerprintKey, &w.sum,
		&w.lastError, &w.codec, &w.header, &w.body,
	} {
		*to, _ = u.next(-1)
	}
	if u.bad || len(u.b) > 0 {
		return errPacked
	}
	return nil
}

// unpacker takes one value after the other: the oid of its type, its length,
// or -1 for null, and its bytes.
type unpacker struct {
	b   []byte
	bad bool
}

// columns takes the number of values.
func (u *unpacker) columns() {
	if len(u.b) < 4 || binary.BigEndian.Uint32(u.b) != uint32(len(columns)) {
		u.bad, u.b = true, nil
		return
	}
	u.b = u.b[4:]
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
