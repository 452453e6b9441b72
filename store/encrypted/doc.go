// Package encrypted encrypts results before they reach a store, so that a reader of the
// database, of a backup or of a replica does not see them.
//
//	keys, err := encrypted.ReadKeyFile("/etc/shop/keys", warn)
//	…
//	guard, err := semel.New(st, &semel.Options{Encryption: &encrypted.Cipher{Keys: keys}})
//
// The option is all that a Guard needs, and all that an Atomic, a batch, a saga or a
// consumer needs. A program that reads a store without a Guard, as package sweep and
// package console do, gets [Cipher.Store] instead of the store.
//
// # What is encrypted
//
// The body, the headers and the codec of each result and each kept failure, the results
// of steps, which are also the input and the state of a saga, and the texts of errors
// (store.Record.LastError). The cipher is AES-256-GCM with a random nonce.
//
// In the clear stay: operation, tenant and key, the state and the times of a record, its
// owners, holder, attempts and fencing token, the status code of a result and whether its
// body was kept, the names of steps, and the hash of the payload, which has a key of its
// own: see semel.Options.Secrets. A result without a code, headers, a body and a codec, as
// semel.Once keeps it, says only that the work is done, and is stored as it is.
//
// # What is authenticated
//
// A ciphertext belongs to one place: the result of one claim of one key, as completed or
// as failed, or one step of one key. In any other place it is refused, and so is one of
// which a bit was changed. The error wraps store.ErrCorrupt and names the record by the
// hash of its key: the record counts as existing, and the handler does not run.
//
// A writer of the database can put a whole record back as it was before, as the restoring
// of a backup does. A writer can exchange a step for a step of the same name and the same
// key from an earlier life of that key. Both cannot be detected without a second database.
// A writer can also delete records, and can put a tombstone in the place of a result: the
// record then says that the work is done, with any status code and without a body, as after
// a store that could not keep the ciphertext. The handler does not run again.
//
// The text of an error is for people, and decides nothing. If it cannot be decrypted, a
// note stands in its place, and the record is readable.
//
// # Records from before
//
// A record that was written without encryption is read as it is. So a writer of the
// database can put a result there in the clear, and Semel returns it. When no such
// record is left, after the longest Retention, set [Cipher.RequireEncrypted].
//
// A process without the option, or without the key, refuses what is encrypted, with an
// error that says so. Give all processes the keys before the first one writes with them.
//
// docs/data-protection.md has the steps for operators.
package encrypted
