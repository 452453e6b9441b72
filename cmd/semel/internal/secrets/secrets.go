// Package secrets reads the file of --secret-file.
package secrets

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
)

const (
	maxFile  = 64 << 10
	maxID    = 64
	leastKey = 16 // bytes
)

// unkeyed stands for the zero Secret, which hashes without a key.
const unkeyed = "unkeyed"

// Read reads secrets, one id:hex a line. The first line hashes, all compare; the first can
// be the word unkeyed. It skips blank lines and lines that begin with #. Errors contain no
// part of a secret.
func Read(path, where string) ([]semel.Secret, error) {
	bad := func(want string, args ...any) error {
		return &input.Error{Field: where, Value: path, Want: fmt.Sprintf(want, args...)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bad("cannot be read: %v", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bad("cannot be read: %v", err)
	}
	if len(doc) > maxFile {
		return nil, bad("has more than %d bytes, which is the most", maxFile)
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
			return nil, bad("line %d is not id:hex, such as 2026-11:00112233445566778899aabbccddeeff", n)
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
		return nil, bad("has no secret; write one id:hex a line; the first hashes")
	}
	return list, nil
}
