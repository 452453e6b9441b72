package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// The Redis key of a record is prefix {bucket} id. In a cluster the bucket, in
// braces, puts the record and the bucket's swept fence in one slot. 4096 buckets
// spread over any cluster, and their swept fences take next to no memory. A
// single server has one swept fence, which a script reads once for many records.
const buckets = 4096

// idLen is the length of an id: half of the key's digest, in base64. That is
// enough, because the record holds its key, and readers compare it.
const idLen = 22

const (
	hexDigits = "0123456789abcdef"
	// sweptFenceName is the suffix of the Redis key of a swept fence: the highest
	// fence of the records that a sweep removed there.
	sweptFenceName = "swept-fence"
	// inDoubtName is the suffix of the Redis key of the set of the Redis keys of the
	// records that are in doubt (store.Unknown). It is beside the swept fence, and a script that
	// changes such a record changes the set, so that they agree.
	inDoubtName = "in-doubt"
	// pingName is the suffix of the Redis key that Ping reads. No record has it.
	pingName = "ping"
	// barrierName is the suffix of the Redis key that Confirm writes. No record has it.
	barrierName = "barrier"
)

// digest is store.Key.Digest's.
type digest = [sha256.Size]byte

// name returns the Redis keys of a record and of its swept fence.
func (s *Store) name(d digest) (record, sweptFence string) {
	b := s.appendBucket(make([]byte, 0, 2*maxName), int(binary.BigEndian.Uint16(d[16:]))%buckets)
	n := len(b)
	b = base64.RawURLEncoding.AppendEncode(b, d[:16])
	if s.cluster == nil {
		return string(b), s.sweptFence
	}
	end := len(b)
	both := string(append(append(b, b[:n]...), sweptFenceName...))
	return both[:end], both[end:]
}

// maxName is the largest length of a record's Redis key.
const maxName = maxPrefix + len("{abc}") + idLen

func (s *Store) appendBucket(b []byte, bucket int) []byte {
	b = append(append(b, s.opt.Prefix...), '{')
	b = append(b, hexDigits[bucket>>8&15], hexDigits[bucket>>4&15], hexDigits[bucket&15])
	return append(b, '}')
}

// sweptFenceOf is the Redis key of the swept fence for a record's Redis key.
func (s *Store) sweptFenceOf(record string) string {
	if s.cluster == nil {
		return s.sweptFence
	}
	return record[:len(record)-idLen] + sweptFenceName
}

// doubtsOf is the Redis key of the set of the records in doubt beside a swept fence.
func doubtsOf(sweptFence string) string {
	return sweptFence[:len(sweptFence)-len(sweptFenceName)] + inDoubtName
}

// pattern matches the Redis keys of records, and no others.
func (s *Store) pattern() string {
	quoted := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.opt.Prefix)
	return quoted + "{???}" + strings.Repeat("?", idLen)
}

// conflictID is equal for equal keys, so that their changes take turns.
func conflictID(d digest) uint64 { return binary.LittleEndian.Uint64(d[:8]) }
