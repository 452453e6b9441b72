package memstore

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// row is a record as it is kept. A store may hold millions, and the garbage
// collector visits each pointer in each of them again and again: so all text
// is in one string, times are numbers, and the pointers come first, for it does
// not look behind the last one.
type row struct {
	text   string // the texts, one after the other
	header string // the outcome's, likewise, each text behind its length
	codec  string
	body   []byte
	next   *row // another key with the same hash

	ends                                        [texts]uint32 // where each text ends
	lines                                       uint32        // of the header
	owner                                       store.Owner
	fence                                       uint64
	until, created, updated, completed, expires int64 // microseconds; see store.Micros
	attempt, code, format                       int
	state                                       store.State
	policy                                      store.Policy
	gone                                        bool
}

const texts = 8

// pack makes w of r. It shares no memory with r.
func (w *row) pack(r *store.Record) {
	k, f, o := &r.Key, &r.Fingerprint, &r.Outcome
	w.write([texts]string{k.Operation, k.Tenant, k.Value, r.Holder, f.Alg, f.KeyID, f.Sum, r.LastError})
	w.header, w.lines, w.body = packed(o.Header), uint32(len(o.Header)), slices.Clip(bytes.Clone(o.Body))
	w.codec = o.Codec // one of a few that live as long as their Guards
	w.owner, w.fence, w.attempt, w.format = r.Owner, r.Fence, r.Attempt, r.Format
	w.until, w.created, w.updated = store.Micros(r.Until), store.Micros(r.Created), store.Micros(r.Updated)
	w.completed, w.expires = store.Micros(r.Completed), store.Micros(r.Expires)
	w.state, w.policy, w.code, w.gone = r.State, r.Policy, o.Code, o.Gone
}

// write keeps the texts. Most changes of a record change none of them.
func (w *row) write(all [texts]string) {
	size, same := 0, true
	for i, t := range all {
		size += len(t)
		same = same && t == w.part(i)
	}
	if same {
		return
	}
	var b strings.Builder
	b.Grow(size)
	for i, t := range all {
		b.WriteString(t)
		w.ends[i] = uint32(b.Len())
	}
	w.text = b.String()
}

func packed(header []store.Header) string {
	var stack [256]byte
	b := stack[:0]
	for i := range header {
		b = appendText(appendText(b, header[i].Name), header[i].Value)
	}
	return string(b)
}

// record is what w was made of. Its body is w's own memory: read only.
func (w *row) record() store.Record {
	return store.Record{
		Key:   store.Key{Operation: w.part(0), Tenant: w.part(1), Value: w.part(2)},
		State: w.state, Policy: w.policy, Fence: w.fence, Owner: w.owner, Holder: w.part(3),
		Fingerprint: store.Fingerprint{Alg: w.part(4), KeyID: w.part(5), Sum: w.part(6)},
		Attempt:     w.attempt, Until: store.Time(w.until), LastError: w.part(7),
		Outcome: w.outcome(),
		Created: store.Time(w.created), Updated: store.Time(w.updated), Completed: store.Time(w.completed),
		Expires: store.Time(w.expires), Format: w.format,
	}
}

// brief is as much of the record as tells whether it is over.
func (w *row) brief() store.Record {
	return store.Record{State: w.state, Until: store.Time(w.until), Expires: store.Time(w.expires)}
}

// is reports whether w is k's.
func (w *row) is(k *store.Key) bool {
	return w.part(2) == k.Value && w.part(1) == k.Tenant && w.part(0) == k.Operation
}

func (w *row) part(i int) string {
	from := uint32(0)
	if i > 0 {
		from = w.ends[i-1]
	}
	return w.text[from:w.ends[i]]
}

func (w *row) outcome() store.Outcome {
	o := store.Outcome{Code: w.code, Codec: w.codec, Body: w.body, Gone: w.gone}
	rest := w.header
	if w.lines > 0 {
		o.Header = make([]store.Header, w.lines)
	}
	for i := range o.Header {
		o.Header[i].Name, rest = cutText(rest)
		o.Header[i].Value, rest = cutText(rest)
	}
	return o
}

func appendText(b []byte, t string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(t))), t...)
}

func cutText(from string) (text, rest string) {
	n, shift := 0, 0
	for i := 0; ; i++ {
		n |= int(from[i]&0x7f) << shift
		if shift += 7; from[i] < 0x80 {
			from = from[i+1:]
			return from[:n], from[n:]
		}
	}
}
