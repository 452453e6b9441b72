package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/semel-go/semel"
)

// derivedPrefix begins the keys that are derived from a body. Clients cannot send
// such keys; see reserved.
const derivedPrefix = "semel-fields:"

// Bodies over parseFree bytes that are parsed at the same time have at most
// parseTotal bytes together, because the parser may hold a value of several times
// its size in memory.
const (
	parseFree  = 64 << 10
	parseTotal = 16 << 20
)

// parsing limits the memory of all parsers.
var parsing = semaphore.NewWeighted(parseTotal)

// searches reports whether the proxy looks for the key of a request in its body. Without
// require-key some requests pass without a look: requests without a tenant, since a key belongs
// to a tenant, and bodies over the limit that are no JSON.
func (d *router) searches(to *route, r *http.Request) bool {
	return to.fromBody && to.protects(r) && !d.scope.Absent(r) && !(r.ContentLength > d.maxBody && hasOtherType(r))
}

// hasOtherType reports whether the Content-Type of a request names a type other than JSON.
func hasOtherType(r *http.Request) bool {
	if r == nil || len(r.Header["Content-Type"]) != 1 {
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header["Content-Type"][0])
	return err == nil && !strings.Contains(kind, "json")
}

// keyFrom derives the key of a request from fields of its JSON body, by a hash.
// The key is empty if a field is missing, null or empty, or if the body is no JSON object.
// A body is refused if the service could find a field in it that keyFrom does not find, such as
// compressed JSON, or a member whose name differs from that of a field in capitals only.
func keyFrom(paths []string) func(*http.Request, io.Reader) (string, error) {
	return func(r *http.Request, body io.Reader) (string, error) {
		if sized, ok := body.(interface{ Size() int64 }); ok && sized.Size() > parseFree {
			weight := min(sized.Size(), parseTotal)
			ctx := context.Background()
			if r != nil {
				ctx = r.Context()
			}
			if err := parsing.Acquire(ctx, weight); err != nil { // the client has left, or the proxy stops
				return "", fmt.Errorf("%w: %w", semel.ErrUnavailable, err)
			}
			defer parsing.Release(weight)
		}
		values, err := fields(body, paths)
		switch {
		case errors.Is(err, errOtherValue), errors.Is(err, errNotJSON) && hasOtherType(r):
			return "", nil
		case err != nil:
			return "", err
		}
		h := sha256.New()
		for _, path := range paths {
			v := values[path]
			if v == "" {
				return "", nil
			}
			var n [8]byte
			for _, part := range []string{path, v} { // the length comes first, so that no two lists of parts have one hash
				binary.BigEndian.PutUint64(n[:], uint64(len(part)))
				h.Write(n[:])
				h.Write([]byte(part))
			}
		}
		return derivedPrefix + base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
	}
}

var (
	errNotObject  = errors.New("the body is not a JSON object, or a member occurs twice")
	errNotJSON    = errors.New("the body is no JSON, and its Content-Type names no other type")
	errOtherValue = errors.New("the body is empty, or is JSON but no object")
	errTooDeep    = fmt.Errorf("the body has more than %d arrays and objects inside one another", maxDepth)
)

// maxDepth bounds the memory of the decoder, which keeps 8 bytes for each array or object that
// is open. Package json decodes no deeper document either.
const maxDepth = 10_000

// fieldReader reads values of a JSON document without holding all of it.
type fieldReader struct {
	json  *json.Decoder
	paths []string
	found map[string]string
}

// fields returns the values at the paths, each in a form that equal values share.
// It refuses a document in which a member on the way to a value occurs twice,
// because the upstream may use either.
func fields(doc io.Reader, paths []string) (map[string]string, error) {
	f := &fieldReader{json: json.NewDecoder(doc), paths: paths, found: map[string]string{}}
	f.json.UseNumber()
	t, err := f.json.Token()
	_, unreadable := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errOtherValue
	case err == nil && t != json.Delim('{'):
		return nil, f.other(t)
	case unreadable, errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errNotJSON
	case err != nil:
		return nil, err
	}
	if err := f.object(""); err != nil {
		return nil, err
	}
	if _, err := f.json.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotObject
	}
	return f.found, nil
}

// other reads the rest of a body that begins with a value that is no object. It reads all
// of it, because compressed JSON can begin as JSON does.
func (f *fieldReader) other(t json.Token) error {
	if t == json.Delim('[') && f.skip() != nil {
		return errNotJSON
	}
	if _, err := f.json.Token(); !errors.Is(err, io.EOF) {
		return errNotJSON
	}
	return errOtherValue
}

// object reads the members of an object whose path is prefix.
func (f *fieldReader) object(prefix string) error {
	seen := map[string]bool{}
	for f.json.More() {
		t, err := f.json.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return errNotObject
		}
		path := prefix + name
		wanted := slices.Contains(f.paths, path) && !strings.Contains(name, ".")
		inside := !strings.Contains(name, ".") && slices.ContainsFunc(f.paths, func(p string) bool { return strings.HasPrefix(p, path+".") })
		if wanted || inside {
			if seen[name] {
				return errNotObject
			}
			seen[name] = true
		} else if want, ok := f.otherCapitals(prefix, name); ok {
			return &otherCapitalsError{want: prefix + want, sent: path}
		}
		if err := f.value(path, wanted, inside); err != nil {
			return err
		}
	}
	if _, err := f.json.Token(); err != nil { // the closing brace
		return errNotObject
	}
	return nil
}

// otherCapitals returns the name on the way to a value that a member has in other capitals.
// Many services, for example with encoding/json or ASP.NET Core, read both as one name.
func (f *fieldReader) otherCapitals(prefix, name string) (want string, ok bool) {
	for _, path := range f.paths {
		if rest, below := strings.CutPrefix(path, prefix); below {
			if want, _, _ = strings.Cut(rest, "."); strings.EqualFold(want, name) {
				return want, true
			}
		}
	}
	return "", false
}

// otherCapitalsError reports a member that the service may take for another one.
type otherCapitalsError struct{ want, sent string } // paths

// Error names both spellings. They have the letters of the option, so a client may see the text.
func (e *otherCapitalsError) Error() string {
	return fmt.Sprintf("the member %q has the name of the field %q in other capitals, and the service may take one for the other; write %q", e.sent, e.want, e.want)
}

// value reads the value of a member.
func (f *fieldReader) value(path string, wanted, inside bool) error {
	t, err := f.json.Token()
	if err != nil {
		return errNotObject
	}
	if d, ok := t.(json.Delim); ok {
		switch {
		case wanted:
			return notScalar(path)
		case inside && d == '{':
			return f.object(path + ".")
		case inside:
			return errNotObject
		}
		return f.skip()
	}
	if inside && t != nil {
		return errNotObject
	}
	if wanted {
		f.found[path], err = scalar(path, t)
	}
	return err
}

// skip reads the rest of an array or object.
func (f *fieldReader) skip() error {
	for depth := 1; depth > 0; {
		t, err := f.json.Token()
		if err != nil {
			return errNotObject
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return errTooDeep
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

func notScalar(path string) error {
	return fmt.Errorf("the field %q must be text, a whole number, true or false", path)
}

// scalar returns a value in a form that equal values share. It is empty for null and
// for empty text.
func scalar(path string, t json.Token) (string, error) {
	switch v := t.(type) {
	case nil:
		return "", nil
	case string:
		// The decoder replaces what is no Unicode text, so that different texts would
		// have one key.
		if strings.ContainsRune(v, utf8.RuneError) {
			return "", fmt.Errorf("the field %q has text that is not valid Unicode, or the character U+FFFD, which stands for such text", path)
		}
		if v == "" {
			return "", nil
		}
		return "s" + v, nil
	case bool:
		return "b" + strconv.FormatBool(v), nil
	case json.Number:
		// JSON has no leading zeros, so equal integers are written alike.
		if n := strings.TrimPrefix(v.String(), "-"); n != "" && strings.Trim(n, "0123456789") == "" && v != "-0" {
			return "n" + v.String(), nil
		}
	}
	return "", notScalar(path)
}
