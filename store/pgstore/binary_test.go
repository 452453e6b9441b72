package pgstore

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

// What goes past pgx is what pgx would send and read.
func TestBinaryIsAsPgxHasIt(t *testing.T) {
	pgx := pgtype.NewMap()
	text := "zahlen \x00 ü"
	for _, is := range []struct {
		oid uint32
		v   any
	}{
		{pgtype.BoolOID, true}, {pgtype.BoolOID, false},
		{pgtype.Int2OID, int16(0)}, {pgtype.Int2OID, int16(-2)}, {pgtype.Int2OID, int16(math.MaxInt16)},
		{pgtype.Int8OID, int64(0)}, {pgtype.Int8OID, int64(-1)}, {pgtype.Int8OID, int64(math.MinInt64)},
		{pgtype.Int4OID, &pgtype.Int4{Int32: math.MinInt32, Valid: true}}, {pgtype.Int4OID, &pgtype.Int4{}}, {pgtype.Int4OID, &pgtype.Int4{Int32: 1}},
		{pgtype.Int8OID, &pgtype.Int8{Int64: math.MaxInt64, Valid: true}}, {pgtype.Int8OID, &pgtype.Int8{Valid: true}}, {pgtype.Int8OID, &pgtype.Int8{Int64: 1}},
		{pgtype.UUIDOID, &pgtype.UUID{Bytes: [16]byte{0: 1, 15: 255}, Valid: true}}, {pgtype.UUIDOID, &pgtype.UUID{Bytes: [16]byte{1}}},
		{pgtype.TextOID, &text}, {pgtype.TextOID, new(string)}, {pgtype.TextOID, (*string)(nil)},
		{pgtype.ByteaOID, []byte("\x00\xff")}, {pgtype.ByteaOID, []byte{}}, {pgtype.ByteaOID, []byte(nil)},
	} {
		want, err := pgx.Encode(is.oid, pgtype.BinaryFormatCode, is.v, []byte{})
		if err != nil {
			t.Fatal(err)
		}
		got, buf, err := binaryOf(is.v, is.oid, []byte("before"))
		if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%T %v is sent as %v, by pgx as %v (%v)", is.v, is.v, got, want, err)
		}
		if !bytes.HasPrefix(buf, []byte("before")) {
			t.Errorf("%T: what was there before is %q", is.v, buf)
		}
		for _, other := range []uint32{pgtype.BoolOID, pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.UUIDOID, pgtype.TextOID, pgtype.ByteaOID, 0} {
			if _, _, err := binaryOf(is.v, other, nil); other != is.oid && err == nil {
				t.Errorf("%T for type %d, which is another: no error", is.v, other)
			}
		}
		for _, to := range []any{new(bool), new(int64), new(pgtype.UUID), new([]byte)} {
			oids := map[reflect.Type]uint32{reflect.TypeFor[*bool](): pgtype.BoolOID, reflect.TypeFor[*int64](): pgtype.Int8OID, reflect.TypeFor[*pgtype.UUID](): pgtype.UUIDOID, reflect.TypeFor[*[]byte](): pgtype.ByteaOID}
			if oids[reflect.TypeOf(to)] != is.oid || want == nil {
				continue
			}
			wants := reflect.New(reflect.TypeOf(to).Elem()).Interface()
			if err := pgx.Scan(is.oid, pgtype.BinaryFormatCode, want, wants); err != nil {
				t.Fatal(err)
			}
			if err := scanBinary([][]byte{want, want}, []any{nil, to}); err != nil || !reflect.DeepEqual(to, wants) {
				t.Errorf("%v is read as %v, by pgx as %v (%v)", want, to, wants, err)
			}
		}
	}
	if _, _, err := binaryOf(3.5, pgtype.Float8OID, nil); err == nil {
		t.Error("a float: no error")
	}
}

func TestArraysAreAsPgxHasThem(t *testing.T) {
	m := pgtype.NewMap()
	for _, texts := range [][]string{{"a", "", "zahlen \x00 ü\xff"}, {""}, {strings.Repeat("long", 1000), "b"}} {
		for _, is := range []lazyArray{
			byteas[string]{texts, func(s *string) string { return *s }},
			int4s[string]{texts, func(s *string) int32 { return int32(len(*s)) - 2 }}, //nolint:gosec // it is short
			uuids[string]{texts, func(s *string) pgtype.UUID { return idOf(store.Key{Value: *s}) }},
		} {
			want, err := m.Encode(is.oid(), pgtype.BinaryFormatCode, is.pgx(), []byte{})
			if err != nil {
				t.Fatal(err)
			}
			got, buf, err := binaryOf(is, is.oid(), []byte("before"))
			if err != nil || !bytes.Equal(got, want) || string(buf) != "before"+string(got) {
				t.Errorf("%T is sent as %x, by pgx as %x (%v), and lies in %x", is, got, want, err, buf)
			}
			if _, _, err := binaryOf(is, pgtype.TextArrayOID, nil); err == nil {
				t.Errorf("%T for texts: no error", is)
			}
			args := []any{1, is}
			if forPgx(args); !reflect.DeepEqual(args, []any{1, is.pgx()}) {
				t.Errorf("pgx is given %v", args)
			}
		}
	}
}

func TestWhatMayBeNullIsReadAsPgxDoes(t *testing.T) {
	m := pgtype.NewMap()
	for _, is := range []struct {
		oid uint32
		row []byte
		to  func() any
	}{
		{pgtype.BoolOID, nil, func() any { return &pgtype.Bool{Bool: true, Valid: true} }},
		{pgtype.BoolOID, []byte{1}, func() any { return &pgtype.Bool{} }},
		{pgtype.BoolOID, []byte{0}, func() any { return &pgtype.Bool{Bool: true} }},
		{pgtype.UUIDOID, nil, func() any { id := &pgtype.UUID{Valid: true}; return &id }},
		{pgtype.UUIDOID, []byte("0123456789abcdef"), func() any { return new(*pgtype.UUID) }},
	} {
		want, got := is.to(), is.to()
		if err := m.Scan(is.oid, pgtype.BinaryFormatCode, is.row, want); err != nil {
			t.Fatal(err)
		}
		if err := scanBinary([][]byte{is.row}, []any{got}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v is read as %v, by pgx as %v (%v)", is.row, got, want, err)
		}
	}
}

func TestBinaryThatIsNotOfTheTypeIsRefused(t *testing.T) {
	for name, is := range map[string]struct {
		row [][]byte
		to  any
	}{
		"a short number":       {[][]byte{make([]byte, 7)}, new(int64)},
		"a long number":        {[][]byte{make([]byte, 9)}, new(int64)},
		"no number":            {[][]byte{nil}, new(int64)},
		"no bool":              {[][]byte{nil}, new(bool)},
		"a long bool":          {[][]byte{{1, 1}}, new(bool)},
		"a short id":           {[][]byte{make([]byte, 15)}, new(pgtype.UUID)},
		"no id":                {[][]byte{nil}, new(pgtype.UUID)},
		"a short id, perhaps":  {[][]byte{make([]byte, 15)}, new(*pgtype.UUID)},
		"a long bool, perhaps": {[][]byte{{1, 1}}, new(pgtype.Bool)},
		"another type":         {[][]byte{make([]byte, 4)}, new(int32)},
		"too few columns":      {nil, new(int64)},
		"too many":             {[][]byte{make([]byte, 8), nil}, new(int64)},
	} {
		if err := scanBinary(is.row, []any{is.to}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var b []byte
	row := [][]byte{[]byte("abc")}
	if err := scanBinary(row, []any{&b}); err != nil {
		t.Fatal(err)
	}
	if row[0][0] = 'x'; string(b) != "abc" {
		t.Errorf("what was read is overwritten: %q", b)
	}
	if err := scanBinary([][]byte{nil}, []any{&b}); err != nil || b != nil {
		t.Errorf("null: %v, %v", b, err)
	}
}
