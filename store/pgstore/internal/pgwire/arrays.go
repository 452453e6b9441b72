package pgwire

import (
	"bytes"

	"github.com/jackc/pgx/v5/pgtype"
)

// Column is one parameter of a batch statement: a value for each request.
func Column[T, V any](from []T, value func(T) V) []V {
	vs := make([]V, len(from))
	for i, f := range from {
		vs[i] = value(f)
	}
	return vs
}

// CompareIDs orders ids by their bytes.
func CompareIDs(a, b pgtype.UUID) int { return bytes.Compare(a.Bytes[:], b.Bytes[:]) }

// The functions below make arrays that pgx encodes without reflection.

// Array is the values as one array.
func Array[V any](values []V) pgtype.Array[V] {
	return pgtype.Array[V]{Elements: values, Valid: true, Dims: []pgtype.ArrayDimension{{Length: int32(len(values)), LowerBound: 1}}} //nolint:gosec // a batch is small
}

// Pointers is a column of pointers to values, which costs pgx no allocation for each.
func Pointers[T, V any](rows []T, value func(*T) V) pgtype.Array[*V] {
	values, to := make([]V, len(rows)), make([]*V, len(rows))
	for i := range rows {
		values[i] = value(&rows[i])
		to[i] = &values[i]
	}
	return Array(to)
}

// Once is a column, or its one value if all are equal.
func Once[T any, V comparable](rows []T, value func(*T) V) pgtype.Array[V] {
	n := len(rows)
	if same(rows, value) {
		n = 1
	}
	values := make([]V, n)
	for i := range values {
		values[i] = value(&rows[i])
	}
	return Array(values)
}

func same[T any, V comparable](rows []T, value func(*T) V) bool {
	first := value(&rows[0])
	for i := range rows {
		if value(&rows[i]) != first {
			return false
		}
	}
	return true
}

// Texts is a column of texts, as bytes in one buffer.
func Texts[T any](rows []T, value func(*T) string) pgtype.Array[[]byte] {
	size := 0
	for i := range rows {
		size += len(value(&rows[i]))
	}
	all, values := make([]byte, 0, size), make([][]byte, len(rows))
	for i := range rows {
		at := len(all)
		all = append(all, value(&rows[i])...)
		values[i] = all[at:]
	}
	return Array(values)
}

// TextOnce is texts, or its one value if all are equal.
func TextOnce[T any](rows []T, value func(*T) string) pgtype.Array[[]byte] {
	if same(rows, value) {
		rows = rows[:1]
	}
	return Texts(rows, value)
}

// OrNulls is a column that may be null. If it is null in all rows, it has no values.
func OrNulls[T any](rows []T, value func(*T) []byte) pgtype.Array[[]byte] {
	values, is := make([][]byte, len(rows)), false
	for i := range rows {
		values[i] = value(&rows[i])
		is = is || values[i] != nil
	}
	if !is {
		values = nil
	}
	return Array(values)
}

// Never stands for null in a column of times whose single value is repeated for all
// rows. No duration is as small.
const Never = -1 << 60

// OrNever is the value of d, or Never for null.
func OrNever(d pgtype.Int8) int64 {
	if !d.Valid {
		return Never
	}
	return d.Int64
}
