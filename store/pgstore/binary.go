package pgstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// The types that the statements of Atomic.Run are given and give, as PostgreSQL
// sends them.

var errNoAnswer = errors.New("the server gave no answer to a statement")

// binaryOf is a value for a parameter of a type, nil for null. It is appended to
// buf, unless it is there as it is.
func binaryOf(v any, oid uint32, buf []byte) (is, _ []byte, err error) {
	at := len(buf)
	want := uint32(0)
	null := false
	switch v := v.(type) {
	case []byte:
		if oid == pgtype.ByteaOID {
			return v, buf, nil
		}
	case *string:
		if want, null = pgtype.TextOID, v == nil; !null {
			buf = append(buf, *v...)
		}
	case bool:
		want, buf = pgtype.BoolOID, append(buf, 0)
		if v {
			buf[at] = 1
		}
	case int16:
		want, buf = pgtype.Int2OID, binary.BigEndian.AppendUint16(buf, uint16(v)) //nolint:gosec // its bits
	case int64:
		want, buf = pgtype.Int8OID, binary.BigEndian.AppendUint64(buf, uint64(v)) //nolint:gosec // its bits
	case *pgtype.Int4:
		want, null, buf = pgtype.Int4OID, !v.Valid, binary.BigEndian.AppendUint32(buf, uint32(v.Int32)) //nolint:gosec // its bits
	case *pgtype.Int8:
		want, null, buf = pgtype.Int8OID, !v.Valid, binary.BigEndian.AppendUint64(buf, uint64(v.Int64)) //nolint:gosec // its bits
	case *pgtype.UUID:
		want, null, buf = pgtype.UUIDOID, !v.Valid, append(buf, v.Bytes[:]...)
	case lazyArray:
		if want = v.oid(); want == oid {
			buf = v.binary(buf)
		}
	}
	switch {
	case want == 0, want != oid:
		return nil, buf, fmt.Errorf("a %T for type %d", v, oid)
	case null:
		return nil, buf, nil
	}
	return buf[at:], buf, nil
}

// scanBinary takes a row apart. What is nil is left out.
func scanBinary(row [][]byte, to []any) error {
	if len(row) != len(to) {
		return fmt.Errorf("%d columns, not %d", len(row), len(to))
	}
	for i, b := range row {
		n := len(b)
		switch v := to[i].(type) {
		case nil:
			continue
		case *[]byte:
			*v = slices.Clone(b) // the row is overwritten by the next
			continue
		case *bool:
			if n == 1 {
				*v = b[0] != 0
				continue
			}
		case *int64:
			if n == 8 {
				*v = int64(binary.BigEndian.Uint64(b)) //nolint:gosec // its bits
				continue
			}
		case *pgtype.UUID:
			if n == 16 {
				*v = pgtype.UUID{Bytes: [16]byte(b), Valid: true}
				continue
			}
		case **pgtype.UUID:
			if *v = nil; b == nil {
				continue
			}
			if n == 16 {
				*v = &pgtype.UUID{Bytes: [16]byte(b), Valid: true}
				continue
			}
		case *pgtype.Bool:
			if n == 1 || b == nil {
				*v = pgtype.Bool{Bool: b != nil && b[0] != 0, Valid: b != nil}
				continue
			}
		}
		return fmt.Errorf("column %d: %d bytes for a %T", i+1, n, to[i])
	}
	return nil
}
