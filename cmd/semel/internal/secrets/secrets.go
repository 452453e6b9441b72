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
	"log/slog"
	"os"
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

// makeLine is the command that makes a line of Read.
const makeLine = `echo "$(date +%Y-%m):$(openssl rand -hex 32)"`

// unkeyed stands for the zero Secret, which hashes without a key.
const unkeyed = "unkeyed"

// Read reads secrets, one id:hex a line. The first line hashes, all compare; the first can
// be the word unkeyed. It skips blank lines and lines that begin with #. Errors contain no
// part of a secret.
func Read(path, where string) ([]semel.Secret, error) {
	bad := func(want string, args ...any) error {
		return &input.Error{Field: where, Value: path, Want: fmt.Sprintf(want, args...)}
	}
	doc, err := read(path, fmt.Sprintf(`(umask 077; %s > %s). If the store has records that were hashed with a secret, copy the file of the processes that wrote them instead`, makeLine, path))
	if err != nil {
		return nil, bad("%v", err)
	}
	var list []semel.Secret
	seen := map[string]bool{}
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
			return nil, bad("line %d: %s can be the first line only", n, unkeyed)
		case !ok || err != nil:
			return nil, bad("line %d is not id:hex; make one with: %s", n, makeLine)
		case id == "" || len(id) > maxID || seen[id]:
			return nil, bad("line %d: the id must be unique, of 1 to %d bytes", n, maxID)
		case len(key) < leastKey:
			return nil, bad("line %d: the secret has %d bytes; at least %d are needed (openssl rand -hex 32)", n, len(key), leastKey)
		}
		seen[id] = true
		list = append(list, semel.Secret{ID: id, Key: key})
	}
	if err := lines.Err(); err != nil {
		return nil, bad("cannot be read: %v", err)
	}
	if len(seen) == 0 {
		return nil, bad("has no secret; append a line id:hex with: %s >> %s", makeLine, path)
	}
	return list, nil
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
	doc, err := read(path, fmt.Sprintf("(umask 077; openssl rand -base64 %d > %s). If the store has hashed records, copy the file of the processes that wrote them instead", leastHashKeys, path))
	if err != nil {
		return nil, bad("%v", err)
	}
	secret, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(doc)))
	switch {
	case err != nil || bytes.ContainsAny(bytes.TrimSpace(doc), "\r\n"): // the decoder skips ends of lines
		return nil, bad("must be one line of base64, such as openssl rand -base64 %d writes", leastHashKeys)
	case len(secret) < leastHashKeys:
		return nil, bad("has %d bytes; at least %d are needed (openssl rand -base64 %d)", len(secret), leastHashKeys, leastHashKeys)
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

// read reads a file. create is the command that makes it.
func read(path, create string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New(input.Unreadable(err, create))
	}
	defer func() { _ = f.Close() }() // nothing was written
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, errors.New(input.Unreadable(err, create))
	}
	if len(doc) > maxFile {
		return nil, fmt.Errorf("has more than %d bytes, which is the most", maxFile)
	}
	return doc, nil
}
