package semelhttp

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// fingerprintAlg names the way in which the default payload is hashed. If the
// hashed parts change, the name has to change too; otherwise stored records
// mismatch.
const fingerprintAlg = "semelhttp/4"

// hostHeader in a list of fingerprint headers stands for the host of the request,
// which net/http keeps apart from the headers.
const hostHeader = "Host"

// prefixPart stands before the part of the path that an outer handler has cut off. No header
// has this name, because of the space.
const prefixPart = "cut prefix"

// defaultFingerprintHeaders change what a request means.
var defaultFingerprintHeaders = []string{
	hostHeader, "Content-Encoding", "Content-Range", "Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "Soapaction", "X-Amz-Target", "Depth", "Destination", "Overwrite",
	// The type and the subject of an event, which may stand beside its body.
	"Ce-Type", "Ce-Subject", "Event-Type", "X-Event-Type", "X-Event-Name", "X-Event-Key",
	"X-Github-Event", "X-Gitlab-Event", "X-Gitea-Event", "X-Shopify-Topic", "X-Wc-Webhook-Topic",
}

// UsualFingerprintHeaders are the headers that requests with one key must have in common if
// Options.FingerprintHeaders is nil.
func UsualFingerprintHeaders() []string { return slices.Clone(defaultFingerprintHeaders) }

// fingerprint hashes the default payload: method, path, query, media type, the prefix
// that an outer handler has cut off the path, the headers of Options.FingerprintHeaders,
// each with its length before it, and the body. The body is hashed while it is spooled; a multipart body is read again, by its
// parts.
func (c *config) fingerprint(r *http.Request, s *spool) ([]byte, *Problem) {
	media, boundary := mediaType(r.Header)
	if boundary != "" {
		if p := c.spoolBody(r, s, io.Discard); p != nil {
			return nil, p
		}
		if parts, err := hashParts(s.reader(), boundary); err == nil {
			h := c.hashHead(r, media, "parts")
			h.Write(parts)
			return h.Sum(nil), nil
		}
		h := c.hashHead(r, media, "boundary", boundary) // it is no valid multipart body
		if _, err := io.Copy(h, s.reader()); err != nil {
			return nil, problem(CodeSpoolUnavailable, err)
		}
		return h.Sum(nil), nil
	}
	h := c.hashHead(r, media, "bytes")
	if p := c.spoolBody(r, s, h); p != nil {
		return nil, p
	}
	return h.Sum(nil), nil
}

// hashHead starts the hash with all but the body. The method is in capitals, because
// the handler may read it so.
func (c *config) hashHead(r *http.Request, parts ...string) hash.Hash {
	stack := make([]byte, 0, 256)
	b := appendPart(stack, strings.ToUpper(r.Method))
	b = appendPart(b, strings.TrimSuffix(r.URL.EscapedPath(), "/")) // a redirect may have added the slash
	b = appendPart(b, r.URL.RawQuery)
	for _, part := range parts {
		b = appendPart(b, part)
	}
	if prefix, _ := cutPrefix(r); prefix != "" {
		b = appendPart(appendPart(b, prefixPart), prefix)
	}
	if c.compares[hostHeader] {
		if host := virtualHost(r.Host); host != "" {
			b = appendPart(appendPart(b, hostHeader), host)
		}
	}
	if c.comparesAny(r.Header) {
		for _, name := range c.FingerprintHeaders { // in order
			for _, v := range r.Header[name] {
				b = appendPart(appendPart(b, name), v)
			}
		}
	}
	b = appendPart(b, "") // no header has this name, so it ends the list, and the body begins
	h := sha256.New()
	h.Write(b)
	return h
}

// comparesAny reports whether the fingerprint has one of the headers. Most requests
// have none, and fewer headers than the list.
func (c *config) comparesAny(h http.Header) bool {
	for name := range h {
		if c.compares[name] {
			return true
		}
	}
	return false
}

func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...) //nolint:gosec // a header is shorter
}

// virtualHost is the name by which a server may choose between several hosts, in a
// normal form. It is empty for an IP address and for localhost, by which a client may
// reach one service in several ways.
func virtualHost(host string) string {
	if strings.HasPrefix(host, "[") { // IPv6
		return ""
	}
	name, port, _ := strings.Cut(strings.ToLower(host), ":")
	name = strings.TrimSuffix(name, ".")
	if name == "" || name == "localhost" {
		return ""
	}
	if last := name[len(name)-1]; last >= '0' && last <= '9' { // no top-level domain ends so
		if _, err := netip.ParseAddr(name); err == nil {
			return ""
		}
	}
	if port == "" || port == "80" || port == "443" {
		return name
	}
	return name + ":" + port
}

// mediaType is the Content-Type in a normal form: case, white space and the order
// of parameters do not count. A value that cannot be parsed stays as it is. The
// boundary of a multipart body is returned alone, because it differs in each repeat.
func mediaType(header http.Header) (media, boundary string) {
	values := header["Content-Type"]
	if len(values) == 0 {
		return "", ""
	}
	v := strings.Join(values, "\x00")
	base, params, err := mime.ParseMediaType(v)
	if err != nil {
		return v, ""
	}
	if charset, ok := params["charset"]; ok {
		params["charset"] = strings.ToLower(charset)
	}
	if strings.HasPrefix(base, "multipart/") {
		boundary = params["boundary"]
		delete(params, "boundary")
	}
	if s := mime.FormatMediaType(base, params); s != "" {
		return s, boundary
	}
	return v, ""
}

// maxParts is the most parts that are compared one by one.
const maxParts = 10_000

// maxPartHead is about the largest head of a part, in bytes, for a body that is compared by
// its parts. Package multipart holds a head several times, or quotes it in an error.
const maxPartHead = 64 << 10

var (
	errManyParts = errors.New("the multipart body has too many parts")
	errLongHead  = errors.New("a part of the multipart body has a head that is too long")
)

// headReader reads at most left bytes while the head of a part is read.
type headReader struct {
	body io.Reader
	left int64 // negative: no limit
}

// Read implements io.Reader.
func (h *headReader) Read(p []byte) (int, error) {
	switch {
	case h.left < 0:
		return h.body.Read(p)
	case h.left == 0:
		return 0, errLongHead
	}
	n, err := h.body.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

// lineEnd is the end of the lines of a multipart body, by its first boundary, as package
// multipart takes it.
func lineEnd(start []byte, boundary string) string {
	for line := range bytes.Lines(start) {
		if bytes.HasPrefix(line, []byte("--"+boundary)) {
			if bytes.HasSuffix(line, []byte("\n")) && !bytes.HasSuffix(line, []byte("\r\n")) {
				return "\n"
			}
			break
		}
	}
	return "\r\n"
}

// hashParts hashes a multipart body by the headers and the bytes of its parts, so that
// the boundary between them does not count.
func hashParts(body io.Reader, boundary string) ([]byte, error) {
	all := sha256.New()
	start := bufio.NewReader(body)
	seen, _ := start.Peek(start.Size())
	nl := lineEnd(seen, boundary)
	// Some bytes follow the body. So a head that the end of the body cuts off is malformed, and
	// package multipart does not take the end of the body for the last boundary.
	in := &headReader{body: io.MultiReader(start, strings.NewReader(nl+"x"+nl))}
	parts := multipart.NewReader(in, boundary)
	for range maxParts {
		in.left = maxPartHead
		part, err := parts.NextRawPart()
		in.left = -1
		if err == io.EOF { // a wrapped one means that the end is missing
			return all.Sum(nil), nil
		}
		if err != nil {
			return nil, err
		}
		var head []byte
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			for _, v := range part.Header[name] {
				head = appendPart(appendPart(head, name), v)
			}
		}
		content := sha256.New()
		if _, err := io.Copy(content, part); err != nil {
			return nil, err
		}
		all.Write(appendPart(nil, string(head)))
		all.Write(content.Sum(nil))
	}
	return nil, errManyParts
}
