package nearcache

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

// envelope is what the front keeps as the body of an outcome: a record of the
// store, and how long it may be handed out.
type envelope struct {
	record   store.Record
	clock    time.Time     // the store's, or later, when the envelope was sent
	life     time.Duration // from then on
	reckoned bool
}

// codec is what the front keeps as the name of the outcome's codec.
const codec = "semel-nearcache-1"

func (v *envelope) encode() []byte {
	r := &v.record
	b := make([]byte, 0, 512+len(r.Outcome.Body))
	number := func(ns ...int64) {
		for _, n := range ns {
			b = binary.AppendVarint(b, n)
		}
	}
	text := func(ts ...string) {
		for _, t := range ts {
			b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
		}
	}
	number(bit(v.reckoned), store.Micros(v.clock), int64(v.life))
	text(r.Key.Operation, r.Key.Tenant, r.Key.Value)
	number(int64(r.State), int64(r.Policy), int64(r.Fence), int64(r.Attempt), int64(r.Format))
	b = append(b, r.Owner[:]...)
	text(r.Holder, r.Fingerprint.Alg, r.Fingerprint.KeyID, r.Fingerprint.Sum, r.LastError)
	number(store.Micros(r.Until), store.Micros(r.Created), store.Micros(r.Updated), store.Micros(r.Completed), store.Micros(r.Expires))
	o := &r.Outcome
	number(int64(o.Code), bit(o.Gone), int64(len(o.Header)))
	for _, h := range o.Header {
		text(h.Name, h.Value)
	}
	text(o.Codec, string(o.Body))
	return b
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

var errEnvelope = errors.New("nearcache: what the front keeps is no envelope")

// decode reads what encode has written, and nothing else.
func decode(b []byte) (*envelope, error) {
	p := parser{rest: b}
	v := &envelope{}
	r := &v.record
	v.reckoned, v.clock, v.life = p.bit(), store.Time(p.number()), time.Duration(p.number())
	r.Key = store.Key{Operation: p.text(), Tenant: p.text(), Value: p.text()}
	r.State, r.Policy = store.State(p.byte()), store.Policy(p.byte())
	r.Fence, r.Attempt, r.Format = uint64(p.number()), int(p.number()), int(p.number())
	copy(r.Owner[:], p.take(uint64(len(r.Owner))))
	r.Holder = p.text()
	r.Fingerprint = store.Fingerprint{Alg: p.text(), KeyID: p.text(), Sum: p.text()}
	r.LastError = p.text()
	for _, t := range [...]*time.Time{&r.Until, &r.Created, &r.Updated, &r.Completed, &r.Expires} {
		*t = store.Time(p.number())
	}
	o := &r.Outcome
	o.Code, o.Gone = int(p.number()), p.bit()
	lines := p.number()
	if lines < 0 || lines > int64(len(p.rest)) { // each has two bytes at least
		return nil, errEnvelope
	}
	for range lines {
		o.Header = append(o.Header, store.Header{Name: p.text(), Value: p.text()})
	}
	o.Codec = p.text()
	o.Body = p.take(p.size())
	if p.bad || len(p.rest) > 0 {
		return nil, errEnvelope
	}
	return v, nil
}

// parser reads from the front of rest. Once it is bad it gives nothing.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) take(n uint64) []byte {
	if p.bad || n > uint64(len(p.rest)) {
		p.bad = true
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) number() int64 {
	n, size := binary.Varint(p.rest)
	if size <= 0 {
		p.bad = true
		return 0
	}
	p.take(uint64(size))
	return n
}

func (p *parser) size() uint64 {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 {
		p.bad = true
		return 0
	}
	p.take(uint64(size))
	return n
}

func (p *parser) text() string { return string(p.take(p.size())) }

func (p *parser) byte() uint8 {
	n := p.number()
	if n < 0 || n > 255 {
		p.bad = true
	}
	return uint8(n)
}

func (p *parser) bit() bool {
	n := p.number()
	if n != 0 && n != 1 {
		p.bad = true
	}
	return n == 1
}
