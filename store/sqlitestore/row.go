package sqlitestore

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"

	"github.com/semel-go/semel/store"
)

// row is a row of semel_record, in the order of columns.
type row struct {
	n                                           int64
	id                                          []byte
	state, policy, fence                        int64
	owner                                       []byte
	attempt                                     int64
	until, expires, created, updated, completed int64
	format                                      int64
	operation, tenant, key, holder              string
	fingerprintAlg, fingerprintKey              string
	fingerprint                                 []byte
	lastError                                   string
	code                                        int64
	codec                                       string
	gone                                        int64
	header                                      string
	body, formerOwners                          []byte
}

// scan reads the current row of rows into before and then the row. A column with
// another type than the schema's makes the row unreadable.
func (w *row) scan(rows *sql.Rows, before ...any) error {
	err := rows.Scan(append(before, &w.n, &w.id, &w.state, &w.policy, &w.fence, &w.owner, &w.attempt,
		&w.until, &w.expires, &w.created, &w.updated, &w.completed, &w.format,
		&w.operation, &w.tenant, &w.key, &w.holder, &w.fingerprintAlg, &w.fingerprintKey, &w.fingerprint, &w.lastError,
		&w.code, &w.codec, &w.gone, &w.header, &w.body, &w.formerOwners)...)
	if err == nil {
		return nil
	}
	if closed := rows.Err(); closed != nil { // when a context ended: the row may be intact
		return closed
	}
	if !broken(err) {
		return fmt.Errorf("%w: row %d of semel_record: %w", store.ErrCorrupt, w.n, err)
	}
	return err
}

// recordOf returns the record of a row that was found by the id of key. If somebody
// makes two keys with one id on purpose, the second gets an error, and not the
// record of the first.
func (w *row) recordOf(key store.Key) (store.Record, error) {
	r, err := w.record()
	if err == nil && r.Key != key {
		return store.Record{}, fmt.Errorf("%w: row %d of semel_record: another key has the same id; use another key", store.ErrCorrupt, w.n)
	}
	return r, err
}

// record returns the row's record, or store.ErrCorrupt.
func (w *row) record() (store.Record, error) {
	corrupt := func(column string, value any, why string) (store.Record, error) {
		return store.Record{}, fmt.Errorf("%w: row %d of semel_record: %s is %v; %s", store.ErrCorrupt, w.n, column, value, why)
	}
	key := store.Key{Operation: w.operation, Tenant: w.tenant, Value: w.key}
	header, err := store.DecodeHeader([]byte(w.header))
	owners, ownersErr := store.DecodeFormerOwners(w.formerOwners)
	switch id := key.ID(); {
	case w.format != store.Format:
		return corrupt("format", w.format, fmt.Sprintf("this version reads %d; a newer one may have written it", store.Format))
	case !bytes.Equal(w.id, id[:]):
		return corrupt("id", fmt.Sprintf("%x", w.id), "it is not that of its operation, tenant and key")
	case w.state < int64(store.Started) || w.state > int64(store.Unknown):
		return corrupt("state", w.state, "it must be 1 to 6")
	case w.policy < int64(store.Retry) || w.policy > int64(store.Park):
		return corrupt("policy", w.policy, "it must be 0 or 1")
	case w.fence < 0:
		return corrupt("fence", w.fence, "it must not be negative")
	case len(w.owner) != len(store.Owner{}):
		return corrupt("owner", fmt.Sprintf("%x", w.owner), "it must have 16 bytes")
	case int64(int(w.attempt)) != w.attempt:
		return corrupt("attempt", w.attempt, "it is too large")
	case int64(int(w.code)) != w.code:
		return corrupt("code", w.code, "it is too large")
	case w.gone != 0 && w.gone != 1:
		return corrupt("gone", w.gone, "it must be 0 or 1")
	case err != nil:
		return corrupt("header", fmt.Sprintf("%d bytes", len(w.header)), err.Error())
	case ownersErr != nil:
		return store.Record{}, fmt.Errorf("row %d of semel_record: %w", w.n, ownersErr)
	}
	return store.Record{
		Key: key, State: store.State(w.state), Policy: store.Policy(w.policy), Fence: uint64(w.fence), Owner: store.Owner(w.owner),
		Holder: w.holder, Attempt: int(w.attempt), Until: store.Time(w.until), LastError: w.lastError,
		Fingerprint: store.Fingerprint{Alg: w.fingerprintAlg, KeyID: w.fingerprintKey, Sum: string(w.fingerprint)},
		Outcome:     store.Outcome{Code: int(w.code), Header: header, Body: w.body, Codec: w.codec, Gone: w.gone == 1},
		Created:     store.Time(w.created), Updated: store.Time(w.updated), Completed: store.Time(w.completed), Expires: store.Time(w.expires),
		Format: int(w.format), FormerOwners: owners,
	}, nil
}

// insertArgs returns the arguments of stInsert. In the states that a claim makes,
// the other columns have their defaults.
func insertArgs(id []byte, r *store.Record) ([]any, error) {
	if r.Fence > math.MaxInt64 {
		return nil, fmt.Errorf("fence %d does not fit in a column; the limit is %d", r.Fence, int64(math.MaxInt64))
	}
	return []any{id, int64(r.State), int64(r.Policy), int64(r.Fence), r.Owner[:], int64(r.Attempt), store.Micros(r.Until),
		store.Micros(r.Created), store.Micros(r.Updated), int64(r.Format), r.Key.Operation, r.Key.Tenant, r.Key.Value, r.Holder,
		r.Fingerprint.Alg, r.Fingerprint.KeyID, []byte(r.Fingerprint.Sum), r.LastError}, nil
}

// replaceArgs returns the arguments of stReplace.
func replaceArgs(id []byte, r *store.Record) ([]any, error) {
	if r.Fence > math.MaxInt64 {
		return nil, fmt.Errorf("fence %d does not fit in a column; the limit is %d", r.Fence, int64(math.MaxInt64))
	}
	args := []any{int64(r.State), int64(r.Policy), int64(r.Fence), r.Owner[:], int64(r.Attempt), store.Micros(r.Until),
		store.Micros(r.Created), store.Micros(r.Updated), int64(r.Format), r.Holder,
		r.Fingerprint.Alg, r.Fingerprint.KeyID, []byte(r.Fingerprint.Sum), r.LastError, store.EncodeFormerOwners(r.FormerOwners)}
	args, err := endArgs(args, r)
	return append(args, id), err
}

// settleArgs returns the arguments of stSettle.
func settleArgs(id []byte, r *store.Record, l *store.Lease) ([]any, error) {
	args, err := endArgs([]any{int64(r.State), int64(r.Attempt), store.Micros(r.Until), store.Micros(r.Updated), r.LastError}, r)
	return append(args, id, l.Owner[:], int64(l.Fence)), err
}

// maxOutcome is well below the limit of a column (1 GB).
const maxOutcome = 256 << 20

// endArgs appends the columns that the end of a claim sets.
func endArgs(args []any, r *store.Record) ([]any, error) {
	header, err := store.EncodeHeader(r.Outcome.Header)
	if err != nil {
		return nil, fmt.Errorf("encode the outcome's header: %w", err)
	}
	if n := len(header) + len(r.Outcome.Body); n > maxOutcome {
		return nil, fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, n, maxOutcome)
	}
	var body any // an empty body is NULL, and is replayed as an empty one
	if len(r.Outcome.Body) > 0 {
		body = r.Outcome.Body
	}
	gone := int64(0)
	if r.Outcome.Gone {
		gone = 1
	}
	return append(args, store.Micros(r.Expires), store.Micros(r.Completed), int64(r.Outcome.Code), r.Outcome.Codec, gone, string(header), body), nil
}
