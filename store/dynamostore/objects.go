package dynamostore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/semel-go/semel/store"
)

// Objects keeps the outcomes that are too large for an item, for example in S3; see
// Options.Objects. Names have up to 130 characters: letters, digits, "-", "_" and "/".
// Safe for concurrent use; a method returns when its ctx ends.
type Objects interface {
	// Put keeps body under name. After nil it is durable, and each later Get returns
	// it. The same name always has the same body.
	Put(ctx context.Context, name string, body []byte) error
	// Get returns the body of name. If there is none, the error wraps fs.ErrNotExist.
	// Any other error means that the object may be there, and the call is made again.
	Get(ctx context.Context, name string) ([]byte, error)
}

// ObjectDeleter is Objects that can delete. [Store.Erase] needs it for records whose
// outcome is an object.
type ObjectDeleter interface {
	// Delete removes the body of name. It is harmless to repeat, and no error if there
	// is none. If the bucket keeps versions, it must remove all versions of the name.
	Delete(ctx context.Context, name string) error
}

// maxInline is the size from which an outcome is an object, if there are Objects. An
// item with as many steps as it may have still has room for it.
const maxInline = 32_000

// errObjects says that Options.Objects gave no answer.
var errObjects = errors.New("no answer from Options.Objects")

// objectsFailed hides the identity of an error of Options.Objects: it must not be taken
// for an answer of the table, such as store.ErrNotFound.
func objectsFailed(method, name string, err error) error {
	return fmt.Errorf("%w: %s %s: %v", errObjects, method, name, err) //nolint:errorlint // on purpose
}

// objectName is the name of the object of a run's outcome. The fence keeps the expiry of
// an object away from later runs, and the sum keeps an object as it is when it is written
// again.
func objectName(k store.Key, fence uint64, sum [sha256.Size]byte) string {
	d := k.Digest()
	return fmt.Sprintf("%s/%d-%s", base64.RawURLEncoding.EncodeToString(d[:]), fence, hex.EncodeToString(sum[:]))
}

// packOutcome makes the value of a record's outcome, nil if the state has none. A large
// outcome is written to Options.Objects first; the value then has its checksum, and the
// tombstone that is read if the object is gone. If only that write fails, the value comes
// with the error.
func (s *Store) packOutcome(ctx context.Context, r *store.Record) ([]byte, error) {
	if !r.State.Terminal() {
		return nil, nil
	}
	encoded := store.EncodeStep(&store.Step{Outcome: r.Outcome})
	if s.opt.Objects == nil {
		return pack(encoded)
	}
	body, err := compress(encoded)
	if err != nil || len(body) <= s.opt.inline {
		return body, err
	}
	sum := sha256.Sum256(body)
	name := objectName(r.Key, r.Fence, sum)
	tombstone, err := pack(store.EncodeStep(&store.Step{Outcome: store.Outcome{Code: r.Outcome.Code, Codec: r.Outcome.Codec, Gone: true}}))
	if err != nil {
		return nil, err
	}
	if err = s.opt.Objects.Put(ctx, name, body); err != nil {
		err = objectsFailed("put", name, err)
	}
	return append(append([]byte{packedObject}, sum[:]...), tombstone...), err
}

// packSettled is packOutcome for an operation that is done. If the objects fail, the
// error is ErrTooLarge, so that the Guard records a tombstone: without a record the
// operation would run again. Half of the time is left for it.
func (s *Store) packSettled(ctx context.Context, r *store.Record) ([]byte, error) {
	limited := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	value, err := s.packOutcome(limited, r)
	if errors.Is(err, errObjects) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return value, err
}

// isSettled reports whether a settlement was stored when it was sent before, and its reply
// was lost. With encryption its body has another checksum each time, so isSettled compares
// the lease, the state and the tombstone only: an owner settles with one outcome.
func (s *Store) isSettled(ctx context.Context, l *store.Lease, state store.State, outcome []byte) bool {
	it, err := s.read(ctx, l.Key)
	if err != nil {
		return false
	}
	r, err := decodeFor(l.Key, it)
	return err == nil && r.Lease() == *l && r.State == state && sameTombstone(it, outcome)
}

// fetchOutcome replaces the tombstone of an outcome that is an object by the outcome. The
// tombstone stays if the object is missing or damaged, or if there are no Objects. With an
// error the record has no outcome: the tombstone is not the answer.
func (s *Store) fetchOutcome(ctx context.Context, it item, r *store.Record) (err error) {
	defer func() {
		if err != nil {
			r.Outcome = store.Outcome{}
		}
	}()
	sum, ok, err := objectSum(it)
	if err != nil || !ok || s.opt.Objects == nil {
		return err
	}
	name := objectName(r.Key, r.Fence, sum)
	body, err := s.opt.Objects.Get(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return objectsFailed("get", name, err)
	case sha256.Sum256(body) != sum:
		return nil
	}
	r.Outcome, err = unpackOutcome(body)
	return err
}

// objectSum is the checksum of the object that has an item's outcome. ok is false if the
// outcome is in the item itself.
func objectSum(it item) (sum [sha256.Size]byte, ok bool, err error) {
	d := decoder{it: it}
	value := []byte(d.text(attrOutcome))
	if len(value) <= sha256.Size || value[0] != packedObject {
		return sum, false, d.err
	}
	return [sha256.Size]byte(value[1:]), true, d.err
}

// deleteObject deletes the object of a record's outcome, if it has one.
func (s *Store) deleteObject(ctx context.Context, it item, r *store.Record) error {
	sum, ok, err := objectSum(it)
	if err != nil || !ok {
		return err
	}
	name := objectName(r.Key, r.Fence, sum)
	deleter, can := s.opt.Objects.(ObjectDeleter)
	if !can {
		return store.WithExtent(fmt.Errorf("its outcome is the object %s, which this process cannot delete; erase it in a program whose Options.Objects has the method Delete", name), store.ExtentCall)
	}
	if err := deleter.Delete(ctx, name); err != nil {
		return objectsFailed("delete", name, err)
	}
	return nil
}

// sameOutcome reports whether an item has the value that packOutcome made.
func sameOutcome(it item, value []byte) bool {
	d := decoder{it: it}
	return d.text(attrOutcome) == string(value)
}

// sameTombstone reports whether an item and a value of packOutcome refer to an object each,
// and have the same tombstone.
func sameTombstone(it item, value []byte) bool {
	const start = 1 + sha256.Size
	_, ok, err := objectSum(it)
	d := decoder{it: it}
	return err == nil && ok && len(value) > start && d.text(attrOutcome)[start:] == string(value[start:])
}
