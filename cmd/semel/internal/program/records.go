package program

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// The look at the records of a store at the start ends after so many records, and after
// this time, so that a large store does not delay the start.
const (
	recordsSeen = 100
	lookTime    = time.Second
)

// WarnRecords looks at a few records of the store, and warns if they were written with
// another choice of --hash-keys-file, --encryption-keys or --secret-file than this process
// has. hashed says whether it hashes tenants and keys. The look takes only records of the
// operations, because other programs of the store can have other options. It does not find
// every difference: a store that cannot list its records, or not soon enough, has no warning.
func WarnRecords(ctx context.Context, log *slog.Logger, st store.Store, hashed bool, list []semel.Secret, operations ...string) {
	l, ok := store.As[store.Lister](st)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	seen, otherKeys, isEncrypted, keyMissing := 0, false, false, error(nil)
	var missing []string // the IDs of secrets
	for f, err := range l.List(ctx, store.Filter{Limit: recordsSeen, Repeats: true}) {
		if seen++; seen > recordsSeen || err != nil && !errors.Is(err, store.ErrCorrupt) {
			break
		}
		r := &f.Record
		switch {
		case errors.Is(err, encrypted.ErrUnknownKey):
			keyMissing = err
		case err == nil && !r.Expired(f.Now) && slices.Contains(operations, r.Key.Operation) && !protocol.IsSaga(r.Key):
			otherKeys = otherKeys || isHashed(r.Key) != hashed
			isEncrypted = isEncrypted || r.Outcome.Codec == encrypted.Codec
			id := r.Fingerprint.KeyID
			if id != "" && !slices.ContainsFunc(list, func(s semel.Secret) bool { return s.ID == id }) && !slices.Contains(missing, id) {
				missing = append(missing, id)
			}
		}
	}
	switch {
	case otherKeys && hashed:
		log.Warn("the store has records from before --hash-keys-file: duplicates of their requests are new requests, and take effect again, until the records expire. If that is not intended, stop, and start without the file; docs/data-protection.md says how to turn it on")
	case otherKeys:
		log.Warn("the store has records whose tenants and keys look like hashes, and --hash-keys-file is not set: duplicates of their requests are new requests, and take effect again. If that is not intended, stop, and start with the file of the processes that wrote them")
	}
	switch {
	case keyMissing != nil:
		log.Warn("the store has records that are encrypted with a key that is not in the file of --encryption-keys: duplicates of their requests are refused. Put the key there; no restart is needed", "error", keyMissing)
	case isEncrypted:
		log.Warn("the store has records that are encrypted, and --encryption-keys is not set: duplicates of their requests are refused, and new answers are stored in clear text. Start with the file of the processes that wrote them")
	}
	switch ids := strings.Join(missing, ","); {
	case ids == "":
	case len(list) == 0:
		log.Warn("the store has records that were hashed with a secret, and --secret-file is not set: their duplicates are refused. Start with the file of the processes that wrote them", "missing", ids)
	default:
		log.Warn("the store has records that were hashed with a secret that is not in the file of --secret-file: their duplicates are refused. Put the line of the secret there, from a process that has it, below the first line", "missing", ids)
	}
}

// isHashed reports whether a key has the form that store.Key.Hashed makes.
func isHashed(k store.Key) bool {
	isHash := func(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
	return isHash(k.Value) && (k.Tenant == "" || isHash(k.Tenant))
}
