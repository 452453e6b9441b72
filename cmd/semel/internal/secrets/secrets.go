// Package secrets reads the files of --secret-file and --hash-keys-file.
package secrets

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

const (
	maxFile  = 64 << 10
	maxID    = 64
	leastKey = 16 // bytes

	leastHashKeys = 32 // bytes; as semel.Options.HashKeys needs them
)

// makeLine is the command that makes a line of Read. Each second it makes another ID,
// because an ID must never be used again with another secret.
const makeLine = `echo "$(date +%F-%H%M%S):$(openssl rand -hex 32)"`

// The records that only the old secrets can compare or find, for messages.
const (
	hashedPayloads = "records that were hashed with a secret"
	hashedKeys     = "hashed records"
)

// unkeyed stands for the zero Secret, which hashes without a key.
const unkeyed = "unkeyed"

// Read reads secrets, one id:hex a line. The first line hashes, all compare; the first can
// be the word unkeyed. It skips blank lines and lines that begin with #. Errors contain no
// part of a secret.
func Read(path, where string) ([]semel.Secret, error) {
	list, _, err := readSecrets(path, where)
	return list, err
}

// Reread reads the file of the secrets in use again. changed is false if it has the same
// secrets, or if it is a pipe, which can be read once only. Other secrets are refused if the
// last line does not end, because the rest of a secret may still be on its way: the part
// would count as another secret with the same ID.
func Reread(path, where string, inUse []semel.Secret) (list []semel.Secret, changed bool, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
		return inUse, false, nil
	}
	list, ended, err := readSecrets(path, where)
	if err != nil {
		return nil, false, err
	}
	changed = !slices.EqualFunc(list, inUse, func(a, b semel.Secret) bool { return a.ID == b.ID && bytes.Equal(a.Key, b.Key) })
	if changed && !ended {
		return nil, false, &input.Error{Field: where, Value: path, Want: "the last line has no newline, so that it may be half-written; if the file is whole, end it with: echo >> " + path}
	}
	return list, changed, nil
}

// readSecrets reads secrets. ended is true if the file ends with a newline.
func readSecrets(path, where string) (list []semel.Secret, ended bool, err error) {
	bad := func(want string, args ...any) error {
		return &input.Error{Field: where, Value: path, Want: fmt.Sprintf(want, args...)}
	}
	doc, err := read(path, input.CopyOr("file", hashedPayloads, fmt.Sprintf("make it with: (umask 077; %s > %s)", makeLine, path)))
	if err != nil {
		return nil, false, bad("%v", err)
	}
	mend := input.CopyOr("line", hashedPayloads, "make a line with: "+makeLine)
	seen := map[string]int{} // the lines of the IDs
	lines := bufio.NewScanner(bytes.NewReader(doc))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if line == unkeyed && len(list) == 0 {
			list = append(list, semel.Secret{})
			continue
		}
		id, digits, ok := strings.Cut(line, ":")
		key, err := hex.DecodeString(digits)
		switch {
		case line == unkeyed:
			return nil, false, bad("line %d: %s can be the first line only; delete the line, or move it to the top", n, unkeyed)
		case !ok || err != nil:
			return nil, false, bad("line %d is not id:hex; %s", n, mend)
		case id == "" || len(id) > maxID:
			return nil, false, bad("line %d: the id has %d bytes; it must have 1 to %d; %s", n, len(id), maxID, mend)
		case seen[id] > 0:
			return nil, false, bad("line %d: the id is that of line %d; delete one of the two lines, if no process uses them yet; otherwise the one that the other processes do not have. A new secret needs a new id, such as from: %s", n, seen[id], makeLine)
		case len(key) < leastKey:
			return nil, false, bad("line %d: the secret has %d bytes; at least %d are needed; %s", n, len(key), leastKey, mend)
		}
		seen[id] = n
		list = append(list, semel.Secret{ID: id, Key: key})
	}
	if err := lines.Err(); err != nil {
		return nil, false, bad("cannot be read: %v", err)
	}
	if len(seen) == 0 {
		return nil, false, bad("has no secret; %s", input.CopyOr("file", hashedPayloads, fmt.Sprintf("append a line id:hex with: %s >> %s", makeLine, path)))
	}
	return list, bytes.HasSuffix(doc, []byte("\n")), nil
}

// Used are the secrets that a process has used since its start, by their IDs.
type Used map[string][]byte

// Add adds secrets that were read from a file. If one has the ID of another secret, it adds
// none, because duplicates of the calls that the other one hashed would look like calls with
// another payload. The error contains no part of a secret.
func (u Used) Add(list []semel.Secret, path, where string) error {
	for _, s := range list {
		if key, ok := u[s.ID]; ok && !bytes.Equal(key, s.Key) {
			return &input.Error{Field: where, Value: path, Want: fmt.Sprintf("the id %q has another secret than this process has used under it; "+
				"put the line of the old secret back, as the other processes have it, before this process starts again, because a start takes the file as it is. A new secret needs a new id, such as from: %s", s.ID, makeLine)}
		}
	}
	for _, s := range list {
		u[s.ID] = s.Key
	}
	return nil
}

// Order is what a log says of secrets: the ID of the one that hashes new calls, and those
// of all that compare. Calls that were hashed without a secret can always be compared.
func Order(list []semel.Secret) []any {
	var ids []string
	for _, s := range list {
		if s.ID != "" {
			ids = append(ids, s.ID)
		}
	}
	return []any{"hashes", cmp.Or(list[0].ID, unkeyed), "compare", strings.Join(append(ids, unkeyed), ",")}
}

// WarnDropped logs a warning if a file of secrets, read again, lacks some that it had.
func WarnDropped(log *slog.Logger, last, now []semel.Secret, path string) {
	var ids []string
	for _, s := range last {
		if !slices.ContainsFunc(now, func(n semel.Secret) bool { return n.ID == s.ID }) && s.ID != "" {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) > 0 {
		log.Warn("secrets have left the file: duplicates of calls that they have hashed are refused with payload_unverifiable; unless these calls have expired, put the lines back, below the first one", "dropped", strings.Join(ids, ","), "file", path)
	}
}

// Log logs at the start with which secrets payloads are hashed and compared, if there are some.
func Log(log *slog.Logger, list []semel.Secret) {
	if len(list) > 0 {
		log.Info("payloads are hashed", Order(list)...)
	}
}

// HashKeys reads the secret for semel.Options.HashKeys: one line, base64 of at least 32
// bytes. An empty path has no secret: nil. The error contains no part of the secret.
func HashKeys(path, where string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	bad := func(want string, args ...any) error {
		return &input.Error{Field: where, Value: path, Want: fmt.Sprintf(want, args...)}
	}
	mend := input.CopyOr("file", hashedKeys, fmt.Sprintf("make it with: (umask 077; openssl rand -base64 %d > %s)", leastHashKeys, path))
	doc, err := read(path, mend)
	if err != nil {
		return nil, bad("%v", err)
	}
	secret, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(doc)))
	switch {
	case err != nil || bytes.ContainsAny(bytes.TrimSpace(doc), "\r\n"): // the decoder skips ends of lines
		return nil, bad("must be one line of base64; %s", mend)
	case len(secret) < leastHashKeys:
		return nil, bad("has %d bytes; at least %d are needed; %s", len(secret), leastHashKeys, mend)
	}
	return secret, nil
}

// LogHashKeys says in the log which secret of HashKeys is in use, by 8 hexadecimal digits
// that show nothing of it, so that processes can be compared. A nil secret logs nothing.
func LogHashKeys(log *slog.Logger, secret []byte) {
	if secret != nil {
		id := store.Key{Operation: "semel", Value: "hash-keys-file"}.Hashed(secret).Short()
		log.Info("tenants and keys are hashed before they are stored; all processes of the store must log the same secret_id", "secret_id", id)
	}
}

// read reads a file. missing is what to do if it is not there.
func read(path, missing string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New(input.Unreadable(err, missing))
	}
	defer func() { _ = f.Close() }() // nothing was written
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, errors.New(input.Unreadable(err, missing))
	}
	if len(doc) > maxFile {
		return nil, fmt.Errorf("has more than %d bytes, which is the most", maxFile)
	}
	return doc, nil
}
