package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// The name of a record's key is prefix {bucket} id. In a cluster the bucket,
// in braces, puts the record and the bucket's floor in one slot. There are
// enough buckets to spread over any cluster, and few enough that their floors
// cost nothing. A single server has one floor, which is looked at once for
// many records.
const buckets = 4096

// idLen is the length of an id: half of the key's digest, in base64. That is
// enough, for the key is in the record and compared when it is read.
const idLen = 22

const (
	hexDigits = "0123456789abcdef"
	floorName = "floor"
)

// digest is store.Key.Digest's.
type digest = [sha256.Size]byte

// name is that of a key's record and of its floor.
func (s *Store) name(d digest) (record, floor string) {
	b := s.appendBucket(make([]byte, 0, 2*maxName), int(binary.BigEndian.Uint16(d[16:]))%buckets)
	n := len(b)
	b = base64.RawURLEncoding.AppendEncode(b, d[:16])
	if s.cluster == nil {
		return string(b), s.floor
	}
	at := len(b)
	both := string(append(append(b, b[:n]...), floorName...))
	return both[:at], both[at:]
}

// maxName is the most bytes of a record's name.
const maxName = maxPrefix + len("{abc}") + idLen

func (s *Store) appendBucket(b []byte, bucket int) []byte {
	b = append(append(b, s.opt.Prefix...), '{')
	b = append(b, hexDigits[bucket>>8&15], hexDigits[bucket>>4&15], hexDigits[bucket&15])
	return append(b, '}')
}

// floorOf is the name of the floor for a record's name.
func (s *Store) floorOf(record string) string {
	if s.cluster == nil {
		return s.floor
	}
	return record[:len(record)-idLen] + floorName
}

// pattern matches the names of all records, and of nothing else.
func (s *Store) pattern() string {
	quoted := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.opt.Prefix)
	return quoted + "{???}" + strings.Repeat("?", idLen)
}

func hasBrace(text string) bool { return strings.ContainsAny(text, "{}") }

// numberOf is equal for equal keys, which must take their turns.
func numberOf(d digest) uint64 { return binary.LittleEndian.Uint64(d[:8]) }
