package event

import (
	"fmt"
	"net/http"
	"strings"
)

// Mode is a content mode of HTTP.
type Mode uint8

// The modes.
const (
	// Binary puts the attributes into headers (ce-id, ce-type), and the data into the
	// body.
	Binary Mode = iota
	// Structured puts the whole event into the body, as JSON.
	Structured
)

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (m *Mode) UnmarshalText(text []byte) error {
	switch string(text) {
	case "binary":
		*m = Binary
	case "structured":
		*m = Structured
	default:
		return fmt.Errorf("%q is no mode; choose binary or structured", text)
	}
	return nil
}

// Write adds the event to the headers of a request, and returns the body. An event that
// came in a format other than JSON stays as it came, in each mode.
func (e *Event) Write(h http.Header, mode Mode) ([]byte, error) {
	switch {
	case e.Attributes == nil, mode == Structured && e.whole != nil:
		h.Set("Content-Type", e.wholeType)
		return e.whole, nil
	case mode == Structured:
		h.Set("Content-Type", mediaJSON+"; charset=utf-8")
		return e.document()
	}
	for name, value := range e.Attributes {
		h.Set("Ce-"+name, encodePercent(value))
	}
	if e.ContentType != "" {
		h.Set("Content-Type", e.ContentType)
	}
	if e.Encoding != "" {
		h.Set("Content-Encoding", e.Encoding)
	}
	return e.Data, nil
}

const hexDigits = "0123456789ABCDEF"

// encode encodes each byte for which plain is false as %XX.
func encode(s string, plain func(c byte) bool) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// encodePercent encodes the value of an attribute for a header, by the rule of the HTTP
// binding: all but printable ASCII, and the space, the quote and the percent sign.
func encodePercent(s string) string {
	return encode(s, func(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' })
}

// encodePath encodes an address for the path of a URI reference.
func encodePath(s string) string {
	return encode(s, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/:@!$&'()*+,;=", c) >= 0
	})
}

// decodePercent is the other way of encodePercent. It leaves a percent sign without two
// hexadecimal digits as it is.
func decodePercent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := unhex(s[i+1]), unhex(s[i+2])
			if high >= 0 && low >= 0 {
				b.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unhex(c byte) int { return strings.IndexByte(hexDigits, upper(c)) }

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
}
