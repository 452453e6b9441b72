package dynamostore

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// The attributes of a record, besides the key and Options.TTL. Numbers are
// microseconds since 1970 or counts.
const (
	attrOwner     = "owner"
	attrFence     = "fence"
	attrState     = "state"
	attrPolicy    = "policy"
	attrHolder    = "holder"
	attrAlg       = "alg" // of the fingerprint, as the next two
	attrKeyID     = "kid"
	attrSum       = "sum"
	attrOperation = "op"
	attrTenant    = "tenant"
	attrValue     = "key"
	attrAttempt   = "attempt"
	attrUntil     = "until"
	attrExpires   = "expires"
	attrCreated   = "created"
	attrUpdated   = "updated"
	attrError     = "error"
	attrOutcome   = "outcome"
	attrFormat    = "format"
	attrFormer    = "former"    // the former owners; absent until the record is claimed again
	attrRenewal   = "renewal"   // the time of the last renewal, by the owner's monotonic clock
	attrSteps     = "steps"     // the names of the steps, in their order
	attrStepBytes = "stepbytes" // the size of all steps
	attrDue       = "due"       // the partition key of the index
	attrDueAt     = "dueat"     // the sort key of the index: until, or updated for a record in doubt
	stepPrefix    = "step:"     // before a step's name: the step
)

var (
	// settleAttributes are those that a settlement writes, besides Options.TTL.
	settleAttributes = []string{
		attrState, attrAttempt, attrUntil, attrExpires, attrUpdated, attrError, attrOutcome, attrDue, attrDueAt,
	}
	// claimAttributes are those that a claim or swap writes besides these.
	// attrCreated is left out, because a swap without Restart keeps it.
	claimAttributes = []string{
		attrOwner, attrFence, attrPolicy, attrHolder, attrAlg, attrKeyID, attrSum, attrOperation, attrTenant, attrValue, attrFormat, attrRenewal, attrFormer,
	}
	recordAttributes = append(append([]string{attrCreated, attrSteps, attrStepBytes}, settleAttributes...), claimAttributes...)
	// seenAttributes are those that Swap compares.
	seenAttributes = []string{attrOwner, attrFence, attrState, attrUntil, attrExpires}
	// leaseAttributes are those that the owner's changes compare.
	leaseAttributes = []string{attrOwner, attrFence, attrState}
)

// sortValue is the sort key of each record, if the table has one.
const sortValue = "semel"

// digestLength is the length of a key's digest in a partition key.
var digestLength = base64.RawURLEncoding.EncodedLen(sha256.Size)

// partition is the partition key of a record.
func (s *Store) partition(k store.Key) string {
	d := k.Digest()
	return s.opt.Prefix + base64.RawURLEncoding.EncodeToString(d[:])
}

// key is the primary key of the record with a partition key.
func (s *Store) key(partition string) item {
	it := item{s.opt.PartitionKey: textOf(partition)}
	if s.opt.SortKey != "" {
		it[s.opt.SortKey] = textOf(sortValue)
	}
	return it
}

// encode makes the attributes of a record, without its steps. outcome is the value that
// packOutcome made.
func (s *Store) encode(r *store.Record, outcome []byte) item {
	it := s.key(s.partition(r.Key))
	for n, text := range map[string]string{
		attrOperation: r.Key.Operation, attrTenant: r.Key.Tenant, attrHolder: r.Holder, attrAlg: r.Fingerprint.Alg,
		attrKeyID: r.Fingerprint.KeyID, attrError: r.LastError,
	} {
		if text != "" {
			it[n] = textOf(text)
		}
	}
	it[attrValue] = &types.AttributeValueMemberB{Value: []byte(r.Key.Value)}
	if former := store.EncodeFormerOwners(r.FormerOwners); former != nil {
		it[attrFormer] = &types.AttributeValueMemberB{Value: former}
	}
	if r.Fingerprint.Sum != "" {
		it[attrSum] = &types.AttributeValueMemberB{Value: []byte(r.Fingerprint.Sum)}
	}
	it[attrOwner] = ownerOf(r.Owner)
	it[attrFence] = numberOf(r.Fence)
	it[attrState], it[attrPolicy] = textOf(r.State.String()), textOf(r.Policy.String())
	it[attrAttempt], it[attrFormat] = numberOf(r.Attempt), numberOf(r.Format)
	for n, t := range map[string]time.Time{attrUntil: r.Until, attrExpires: r.Expires, attrCreated: r.Created, attrUpdated: r.Updated} {
		if !t.IsZero() {
			it[n] = numberOf(store.Micros(t))
		}
	}
	if outcome != nil {
		it[attrOutcome] = &types.AttributeValueMemberB{Value: outcome}
	}
	s.index(r, it)
	return it
}

// index adds the attributes by which the index and DynamoDB's time to live find a
// record. Only records without an end of their own are in the index.
func (s *Store) index(r *store.Record, it item) {
	kind, at := "", r.Until
	switch r.State {
	case store.Started, store.Processing:
		kind = dueLive
	case store.Unknown:
		kind, at = dueDoubt, r.Updated
	default:
		// A later claim of the key has a higher fence, because its clock is past
		// all clocks that made this record. An expired record stays readable.
		it[s.opt.TTL] = numberOf(r.Expires.Add(2*s.opt.MaxSkew+linger).Unix() + 1)
		return
	}
	d := r.Key.Digest()
	it[attrDue] = textOf(s.indexPartition(kind, int(d[31])<<8|int(d[30])))
	it[attrDueAt] = numberOf(store.Micros(at))
}

// The kinds of records in the index.
const (
	dueLive  = "live#"
	dueDoubt = "doubt#"
)

// linger is how long after its expiry DynamoDB may delete a record at the earliest.
const linger = time.Hour

// indexPartition is the partition key of the index for a kind of record and a shard.
func (s *Store) indexPartition(kind string, shard int) string {
	return s.opt.Prefix + kind + strconv.Itoa(shard%s.opt.IndexShards)
}

// textOf is a string attribute, or a binary one if the text is not UTF-8.
func textOf(text string) types.AttributeValue {
	if !utf8.ValidString(text) {
		return &types.AttributeValueMemberB{Value: []byte(text)}
	}
	return &types.AttributeValueMemberS{Value: text}
}

func numberOf[N int | int64 | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func ownerOf(o store.Owner) types.AttributeValue {
	return &types.AttributeValueMemberB{Value: o[:]}
}

// The first byte of a packed value.
const (
	packedRaw   = 0
	packedFlate = 1
	// packedObject: the checksum of an object follows, and a packed tombstone.
	packedObject = 2
)

// Packed values are compressed from smallPacked on. A value of more than
// maxUnpacked bytes is refused, and one of more than maxPacked when compressed.
const (
	smallPacked = 512
	maxUnpacked = 64 << 20
	maxPacked   = 390_000
)

// pack is compress for a value that goes into an item.
func pack(b []byte) ([]byte, error) {
	packed, err := compress(b)
	if err == nil && len(packed) > maxPacked {
		return nil, fmt.Errorf("%w: %d bytes after compression; DynamoDB keeps items up to 400 KB, so the limit is %d", store.ErrTooLarge, len(packed), maxPacked)
	}
	return packed, err
}

// compress compresses a value if that makes it smaller.
func compress(b []byte) ([]byte, error) {
	if len(b) > maxUnpacked {
		return nil, fmt.Errorf("%w: %d bytes; the limit before compression is %d", store.ErrTooLarge, len(b), maxUnpacked)
	}
	packed := append([]byte{packedRaw}, b...)
	if len(b) >= smallPacked {
		var out bytes.Buffer
		out.WriteByte(packedFlate)
		w, err := flate.NewWriter(&out, flate.BestSpeed)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		if out.Len() < len(packed) {
			packed = out.Bytes()
		}
	}
	return packed, nil
}

// unpack is the inverse of compress. Of an object's value it gives the tombstone.
func unpack(b []byte) ([]byte, error) {
	switch {
	case len(b) > sha256.Size && b[0] == packedObject:
		return unpack(b[1+sha256.Size:])
	case len(b) > 0 && b[0] == packedRaw:
		return b[1:], nil
	case len(b) > 0 && b[0] == packedFlate:
		out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[1:])), maxUnpacked+1))
		if err != nil || len(out) > maxUnpacked {
			return nil, fmt.Errorf("%w: its %d compressed bytes cannot be read: %w", store.ErrCorrupt, len(b), err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: the form of its packed bytes is unknown; a newer version may have written it", store.ErrCorrupt)
}
