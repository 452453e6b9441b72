package memstore

import (
	"encoding/binary"

	"github.com/semel-go/semel/store"
)

// row is a record as it rests: one piece of memory without a pointer. It begins
// with the numbers, at fixed places. Then come texts, each behind its length,
// and then the body, to the end. A row does not change, so who was given a body
// may go on reading it.
type row []byte

// Where the numbers are. Times are microseconds; see store.Micros.
const (
	atUntil     = 0
	atUpdated   = 8
	atCreated   = 16
	atCompleted = 24
	atExpires   = 32
	atFence     = 40
	atAttempt   = 48
	atCode      = 56
	atFormat    = 64
	atLines     = 72 // of the header
	atBody      = 76 // where the body begins
	atEnd       = 80
	atState     = 84
	atPolicy    = 85
	atGone      = 86
	atOwner     = 87
	atTexts     = 103
)

// claimed are the texts that a caller may have already.
type claimed [7]string

func textsOf(k *store.Key, holder string, f *store.Fingerprint) claimed {
	return claimed{k.Value, k.Tenant, k.Operation, holder, f.Alg, f.KeyID, f.Sum}
}

var order = binary.LittleEndian

// rowSize is how many bytes pack needs.
func rowSize(r *store.Record) int {
	o := &r.Outcome
	size := atTexts + textSize(o.Codec) + textSize(r.LastError) + len(o.Body)
	texts := textsOf(&r.Key, r.Holder, &r.Fingerprint)
	for i := range texts {
		size += textSize(texts[i])
	}
	for i := range o.Header {
		size += textSize(o.Header[i].Name) + textSize(o.Header[i].Value)
	}
	return size
}

// pack makes a row of r in mem, of rowSize, which then holds all of it.
func pack(r *store.Record, mem []byte) {
	o := &r.Outcome
	w := row(mem[:atTexts])
	w.setTime(atUntil, store.Micros(r.Until))
	w.setTime(atUpdated, store.Micros(r.Updated))
	w.setTime(atCreated, store.Micros(r.Created))
	w.setTime(atCompleted, store.Micros(r.Completed))
	w.setTime(atExpires, store.Micros(r.Expires))
	order.PutUint64(w[atFence:], r.Fence)
	order.PutUint64(w[atAttempt:], uint64(r.Attempt))
	order.PutUint64(w[atCode:], uint64(o.Code))
	order.PutUint64(w[atFormat:], uint64(r.Format))
	order.PutUint32(w[atLines:], uint32(len(o.Header)))
	order.PutUint32(w[atEnd:], uint32(len(mem)))
	w[atState], w[atPolicy], w[atGone] = byte(r.State), byte(r.Policy), 0
	if o.Gone {
		w[atGone] = 1
	}
	copy(w[atOwner:atTexts], r.Owner[:])
	t := writer{mem, atTexts}
	texts := textsOf(&r.Key, r.Holder, &r.Fingerprint)
	for i := range texts {
		t.text(texts[i])
	}
	t.text(o.Codec)
	t.text(r.LastError)
	for i := range o.Header {
		t.text(o.Header[i].Name)
		t.text(o.Header[i].Value)
	}
	order.PutUint32(w[atBody:], uint32(t.at))
	copy(mem[t.at:], o.Body)
}

// writer writes the texts of a row, one after the other.
type writer struct {
	mem []byte
	at  int
}

func (t *writer) text(s string) {
	if len(s) < 0x80 {
		t.mem[t.at] = byte(len(s))
		t.at++
	} else {
		t.at += binary.PutUvarint(t.mem[t.at:], uint64(len(s)))
	}
	t.at += copy(t.mem[t.at:], s)
}

// rowAt is the row that begins mem. It has no room behind it: who appends to a
// body writes elsewhere.
func rowAt(mem []byte) row {
	end := order.Uint32(mem[atEnd:])
	return row(mem[:end:end])
}

func (w row) setTime(at int, micros int64) { order.PutUint64(w[at:], uint64(micros)) }
func (w row) micros(at int) int64          { return int64(order.Uint64(w[at:])) }
func (w row) number(at int) int            { return int(int64(order.Uint64(w[at:]))) }
func (w row) state() store.State           { return store.State(w[atState]) }
func (w row) fence() uint64                { return order.Uint64(w[atFence:]) }
func (w row) owner() store.Owner           { return store.Owner(w[atOwner:atTexts]) }

// numbers is the record without its texts and its outcome: enough to judge a
// lease, and whether it is over.
func (w row) numbers() store.Record {
	return store.Record{
		State: w.state(), Policy: store.Policy(w[atPolicy]), Fence: w.fence(), Owner: w.owner(),
		Attempt: w.number(atAttempt), Until: store.Time(w.micros(atUntil)),
		Created: store.Time(w.micros(atCreated)), Updated: store.Time(w.micros(atUpdated)),
		Completed: store.Time(w.micros(atCompleted)), Expires: store.Time(w.micros(atExpires)), Format: w.number(atFormat),
	}
}

// record is what w was made of. Its body is w's own memory: read only. Texts
// that the caller has already are not copied, which spares most duplicates it.
func (w row) record(has *claimed) store.Record {
	if has == nil {
		has = &claimed{}
	}
	r := w.numbers()
	t := reader{row: w, at: atTexts}
	r.Key.Value, r.Key.Tenant, r.Key.Operation, r.Holder = t.text(has[0]), t.text(has[1]), t.text(has[2]), t.text(has[3])
	r.Fingerprint.Alg, r.Fingerprint.KeyID, r.Fingerprint.Sum = t.text(has[4]), t.text(has[5]), t.text(has[6])
	r.Outcome = store.Outcome{Code: w.number(atCode), Codec: t.text(""), Gone: w[atGone] == 1}
	r.LastError = t.text("")
	if n := order.Uint32(w[atLines:]); n > 0 {
		r.Outcome.Header = make([]store.Header, n)
	}
	for i := range r.Outcome.Header {
		r.Outcome.Header[i].Name = t.text("")
		r.Outcome.Header[i].Value = t.text("")
	}
	if t.at < len(w) {
		r.Outcome.Body = w[t.at:]
	}
	return r
}

// is reports whether w is k's.
func (w row) is(k *store.Key) bool {
	t := reader{row: w, at: atTexts}
	for _, part := range [...]*string{&k.Value, &k.Tenant, &k.Operation} {
		if string(t.next()) != *part {
			return false
		}
	}
	return true
}

// reader reads the texts of a row, one after the other.
type reader struct {
	row    row
	at     int
	copied string // all texts, once one of them was needed
}

func (t *reader) next() []byte {
	n, size := binary.Uvarint(t.row[t.at:])
	from := t.at + size
	t.at = from + int(n)
	return t.row[from:t.at]
}

// text is the next text: known, if it is the same.
func (t *reader) text(known string) string {
	b := t.next()
	if string(b) == known {
		return known
	}
	if t.copied == "" {
		t.copied = string(t.row[atTexts:order.Uint32(t.row[atBody:])])
	}
	end := t.at - atTexts
	return t.copied[end-len(b) : end]
}

// textSize is how many bytes a writer needs for a text.
func textSize(t string) int {
	size := 1 + len(t)
	for n := len(t) >> 7; n > 0; n >>= 7 {
		size++
	}
	return size
}
