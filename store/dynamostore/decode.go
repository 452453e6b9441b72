package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// errCollision refuses a call whose key has the digest of another key. SHA-256
// makes that practically impossible.
var errCollision = errors.New("another key has the same digest; use another key")

// readRecord decodes the record of a key, with an outcome that is an object. If only the
// outcome cannot be read, it returns the record without it and the error.
func (s *Store) readRecord(ctx context.Context, k store.Key, it item) (store.Record, error) {
	r, err := decodeFor(k, it)
	if err == nil {
		err = s.fetchOutcome(ctx, it, &r)
	}
	return r, err
}

// decodeFor decodes the record of a key. An outcome that is an object is a tombstone.
func decodeFor(k store.Key, it item) (store.Record, error) {
	r, err := decode(it)
	if err == nil && r.Key != k {
		err = errCollision
	}
	if err != nil {
		return store.Record{}, err
	}
	return r, nil
}

// decode reads a record; an error wraps store.ErrCorrupt.
func decode(it item) (store.Record, error) {
	d := decoder{it: it}
	if format := d.number(attrFormat); d.err == nil && format != store.Format {
		return store.Record{}, fmt.Errorf("%w: format is %d; this version reads %d; a newer one may have written it", store.ErrCorrupt, format, store.Format)
	}
	r := store.Record{
		Key:         store.Key{Operation: d.text(attrOperation), Tenant: d.text(attrTenant), Value: d.text(attrValue)},
		Holder:      d.text(attrHolder),
		Fingerprint: store.Fingerprint{Alg: d.text(attrAlg), KeyID: d.text(attrKeyID), Sum: d.text(attrSum)},
		Fence:       uint64(d.number(attrFence)),
		Attempt:     int(d.number(attrAttempt)),
		LastError:   d.text(attrError),
		Until:       d.time(attrUntil),
		Expires:     d.time(attrExpires),
		Created:     d.time(attrCreated),
		Updated:     d.time(attrUpdated),
		Format:      store.Format,
	}
	owner := d.text(attrOwner)
	if len(owner) != len(r.Owner) {
		d.fail(attrOwner)
	}
	copy(r.Owner[:], owner)
	if err := r.State.UnmarshalText([]byte(d.text(attrState))); err != nil {
		d.fail(attrState)
	}
	if err := r.Policy.UnmarshalText([]byte(d.text(attrPolicy))); err != nil {
		d.fail(attrPolicy)
	}
	former, err := store.DecodeFormerOwners([]byte(d.text(attrFormer)))
	if err != nil {
		return store.Record{}, err
	}
	r.FormerOwners = former
	if r.State.Terminal() {
		r.Completed = r.Updated // a terminal record does not change
		if r.Outcome, err = unpackOutcome([]byte(d.text(attrOutcome))); err != nil {
			return store.Record{}, err
		}
	}
	return r, d.err
}

// unpackOutcome decodes the value of an outcome, or its object.
func unpackOutcome(value []byte) (store.Outcome, error) {
	b, err := unpack(value)
	if err != nil {
		return store.Outcome{}, err
	}
	step, err := store.DecodeStep("", time.Time{}, b)
	return step.Outcome, err
}

// decoder reads attributes, and keeps the first error.
type decoder struct {
	it  item
	err error
}

func (d *decoder) fail(attribute string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: the attribute %q is missing or has another form", store.ErrCorrupt, attribute)
	}
}

// text is a string or binary attribute; an absent one is empty.
func (d *decoder) text(attribute string) string {
	switch v := d.it[attribute].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	default:
		d.fail(attribute)
	}
	return ""
}

// number is a number that must be there. Fences are less than 2^63, because they
// are times in microseconds.
func (d *decoder) number(attribute string) int64 {
	v, ok := d.it[attribute].(*types.AttributeValueMemberN)
	if !ok {
		d.fail(attribute)
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		d.fail(attribute)
	}
	return n
}

func (d *decoder) time(attribute string) time.Time {
	if d.it[attribute] == nil {
		return time.Time{}
	}
	return store.Time(d.number(attribute))
}
