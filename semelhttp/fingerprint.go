package semelhttp

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/semel-go/semel"
)

// fingerprintAlg names how the default payload is hashed. A change of what
// goes into the hash needs a new name, lest old records mismatch.
const fingerprintAlg = "semelhttp/1"

// hasher computes the default payload. Most requests are small, and are hashed
// in one go, which costs half of what it takes piece by piece.
type hasher struct {
	small []byte    // what is to be hashed, until it is too much
	large hash.Hash // takes the rest; nil: it was never needed
	over  bool      // it was too much
}

// maxSmall is how much is hashed in one go.
const maxSmall = 4 << 10

var hashers = sync.Pool{New: func() any { return &hasher{} }}

// Write implements io.Writer. It never fails.
func (h *hasher) Write(p []byte) (int, error) {
	if !h.over && len(h.small)+len(p) <= maxSmall {
		h.small = append(h.small, p...)
		return len(p), nil
	}
	if !h.over {
		if h.large == nil {
			h.large = sha256.New()
		}
		h.over = true
		h.large.Reset()
		h.large.Write(h.small)
	}
	return h.large.Write(p)
}

// newHasher has hashed all of a request but its body, which comes last.
func newHasher(r *http.Request) *hasher {
	h := hashers.Get().(*hasher)
	b := h.small[:0]
	for _, part := range [...]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, mediaType(r.Header)} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	h.small, h.over = b, false
	return h
}

// payload is what was hashed; it keeps room.
func (h *hasher) payload(room []byte) semel.Payload {
	return semel.Digest(fingerprintAlg, h.sum(room[:0]))
}

func (h *hasher) sum(room []byte) []byte {
	if h.over {
		return h.large.Sum(room)
	}
	sum := sha256.Sum256(h.small)
	return append(room, sum[:]...)
}

// free gives the hasher back. Nothing that it returned shares its memory.
func (h *hasher) free() { hashers.Put(h) }

// mediaType is the Content-Type without what does not change its meaning:
// case, white space, the order of parameters. A multipart boundary is not
// dropped, for the body holds it too. What cannot be parsed counts as it is.
func mediaType(header http.Header) string {
	values := header["Content-Type"]
	if len(values) == 0 {
		return ""
	}
	v := values[0]
	if len(values) > 1 {
		v = strings.Join(values, "\x00")
	}
	if isPlain(v) {
		return v
	}
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

// isPlain reports whether a media type is in its normal form already: lower
// case and without parameters.
func isPlain(v string) bool {
	for i := 0; i < len(v); i++ {
		c := v[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '/' && c != '-' && c != '+' && c != '.' {
			return false
		}
	}
	return true
}
