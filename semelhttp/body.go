package semelhttp

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
)

// requestBody is the body that a handler reads: the spooled one, from its start.
// It is closed when the handler returns, like the server's own body.
type requestBody struct {
	mu     sync.Mutex
	reader io.Reader // nil: closed
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.reader.Read(p)
}

// Close implements io.Closer.
func (b *requestBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reader = nil
	return nil
}

// fingerprintAlg names the way in which the default payload is hashed. If the
// hashed parts change, the name has to change too; otherwise stored records
// mismatch.
const fingerprintAlg = "semelhttp/1"

// newFingerprint starts the hash of the default payload: method, path, query and
// media type, each with its length before it. The caller adds the body.
func newFingerprint(r *http.Request) hash.Hash {
	var b []byte
	for _, part := range [...]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, mediaType(r.Header)} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	h := sha256.New()
	h.Write(b)
	return h
}

// mediaType is the Content-Type in a normal form: case, white space and the order
// of parameters do not count. It keeps a multipart boundary, because the body
// contains it too. A value that cannot be parsed stays as it is.
func mediaType(header http.Header) string {
	values := header["Content-Type"]
	if len(values) == 0 {
		return ""
	}
	v := strings.Join(values, "\x00")
	base, params, err := mime.ParseMediaType(v)
	if err != nil {
		return v
	}
	if charset, ok := params["charset"]; ok {
		params["charset"] = strings.ToLower(charset)
	}
	if s := mime.FormatMediaType(base, params); s != "" {
		return s
	}
	return v
}
