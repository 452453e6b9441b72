package store

import "strings"

// ID is a primary key of 16 bytes for the record of k. It is half of the key's
// digest. If the keys of a table are made in order (UUIDs of version 7, ULIDs,
// numbers), the ID begins with 6 bytes of the key's position in that order, so that
// new rows are written to the same pages of the index. Random IDs would be written
// to all pages, which is slow when the index is larger than memory.
//
// The position is the time in milliseconds of a UUID of version 7 (RFC 9562, section
// 5.7) or of a ULID, alone or at the end of the key's value, or the highest 48 bits
// of a number such as in "order-1234", "INV1234" or "1234".
//
// Two keys have the same ID only if at least 80 bits are equal by accident. A
// store that reads a record by its ID must compare the key. The ID of a key never
// changes.
func (k Key) ID() [16]byte {
	d := k.Digest()
	id := [16]byte(d[:16])
	if n, ok := positionOf(k.Value); ok {
		for i := range positionLen {
			id[i] = byte(n >> (8 * (positionLen - 1 - i)))
		}
	}
	return id
}

const (
	positionLen = 6 // bytes of an ID
	positionMax = 1<<(8*positionLen) - 1
	maxDigits   = 19 // decimal digits that fit in 64 bits
)

// positionOf is the position of a value in the order in which values are made.
func positionOf(value string) (n uint64, ok bool) {
	if n, ok = timeOfUUID(value); ok {
		return n, true
	}
	start := len(value) // of the last word
	for start > 0 && isAlphanumeric(value[start-1]) {
		start--
	}
	if n, ok = timeOfULID(value[start:]); ok {
		return n, true
	}
	return numberOf(value[start:])
}

// timeOfUUID is the time of a UUID of version 7 at the end of a value.
func timeOfUUID(value string) (ms uint64, ok bool) {
	const length, firstDash = 36, 8
	from := len(value) - length
	if from < 0 || from > 0 && isAlphanumeric(value[from-1]) {
		return 0, false
	}
	u := value[from:]
	if u[firstDash] != '-' || u[13] != '-' || u[14] != '7' || u[18] != '-' || u[23] != '-' {
		return 0, false
	}
	for i := range 13 {
		if i == firstDash {
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

// timeOfULID is the time of a ULID: the first 10 of 26 digits in Crockford's base 32.
func timeOfULID(word string) (ms uint64, ok bool) {
	const length, timeDigits = 26, 10
	if len(word) != length || word[0] > '7' { // a larger first digit does not fit in 128 bits
		return 0, false
	}
	for i := range timeDigits {
		d := strings.IndexByte(crockford, word[i]|0x20) // to lower case
		if d < 0 {
			return 0, false
		}
		ms = ms<<5 | uint64(d)
	}
	return ms, true
}

const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// numberOf is the number at the end of a word of letters and then digits. A word with
// digits before letters, such as the end of a UUID of version 4, is random.
func numberOf(word string) (n uint64, ok bool) {
	start := len(word)
	for start > 0 && '0' <= word[start-1] && word[start-1] <= '9' {
		start--
	}
	for i := range start {
		if '0' <= word[i] && word[i] <= '9' {
			return 0, false
		}
	}
	digits := word[start:]
	for _, c := range []byte(digits[:min(len(digits), maxDigits)]) {
		n = n*10 + uint64(c-'0')
	}
	for n > positionMax {
		n >>= 1
	}
	return n, len(digits) > 0
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
