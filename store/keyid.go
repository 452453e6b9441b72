package store

import "strings"

// ID finds a record: half of the key's digest, and a primary key of fixed size.
// Of a value that tells its place in an order the first six bytes are that place,
// so that an index of IDs is written where its last ones are, as an index of the
// values would be. At random places it is not in memory once it is large, and after
// each checkpoint of PostgreSQL nearly every new ID has a whole page of it logged.
//
// A place is told by a UUID of version 7 (RFC 9562, section 5.7) and by a ULID, at
// the end of the value or alone: its milliseconds since 1970; and by the number at
// the end of a value such as "order-1234", "INV1234" or "1234", of which it is the 48
// highest bits. What only looks like one of these has an ID as good as any.
//
// Two keys may have one ID by an accident of 80 bits at the least: whoever reads a
// record compares its key. The ID of a key may never change.
func (k Key) ID() [16]byte {
	d := k.Digest()
	id := [16]byte(d[:16])
	if n, is := placeOf(k.Value); is {
		for i := range placeLen {
			id[i] = byte(n >> (8 * (placeLen - 1 - i)))
		}
	}
	return id
}

const (
	placeLen = 6 // bytes of an ID
	placeMax = 1<<(8*placeLen) - 1
	maxTens  = 19 // decimal digits that fit in 64 bits
)

// placeOf is the place of a value among those made before and after it.
func placeOf(value string) (n uint64, is bool) {
	if n, is = ofUUID(value); is {
		return n, true
	}
	word := len(value) // where the last word begins
	for word > 0 && isAlphanumeric(value[word-1]) {
		word--
	}
	if n, is = ofULID(value[word:]); is {
		return n, true
	}
	return ofNumber(value[word:])
}

// ofUUID is the time of a UUID of version 7 that value ends with.
func ofUUID(value string) (ms uint64, is bool) {
	const length, dashes = 36, 8 // hexadecimal digits and dashes, and where the first dash is
	from := len(value) - length
	if from < 0 || from > 0 && isAlphanumeric(value[from-1]) {
		return 0, false
	}
	u := value[from:]
	if u[dashes] != '-' || u[13] != '-' || u[14] != '7' || u[18] != '-' || u[23] != '-' {
		return 0, false
	}
	for i := range 13 {
		if i == dashes {
			continue
		}
		d, hex := digit(u[i])
		if !hex {
			return 0, false
		}
		ms = ms<<4 | d
	}
	return ms, true
}

func digit(c byte) (d uint64, hexadecimal bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'a' <= c && c <= 'f':
		return uint64(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return uint64(c-'A') + 10, true
	}
	return 0, false
}

// ofULID is the time of a ULID: 26 digits of Crockford's base 32, of which the
// first ten are it.
func ofULID(word string) (ms uint64, is bool) {
	const length, ofTime = 26, 10
	if len(word) != length || word[0] > '7' { // else it does not fit in 128 bits
		return 0, false
	}
	for i := range ofTime {
		d := strings.IndexByte(crockford, word[i]|0x20) // a digit has that bit
		if d < 0 {
			return 0, false
		}
		ms = ms<<5 | uint64(d)
	}
	return ms, true
}

const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// ofNumber is the number of a word that is letters, or nothing, and then digits.
// A word of both mixed is random, such as the end of a UUID of version 4.
func ofNumber(word string) (n uint64, is bool) {
	at := len(word)
	for at > 0 && '0' <= word[at-1] && word[at-1] <= '9' {
		at--
	}
	for i := range at {
		if '0' <= word[i] && word[i] <= '9' {
			return 0, false
		}
	}
	digits := word[at:]
	for _, c := range []byte(digits[:min(len(digits), maxTens)]) {
		n = n*10 + uint64(c-'0')
	}
	for n > placeMax {
		n >>= 1
	}
	return n, len(digits) > 0
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
