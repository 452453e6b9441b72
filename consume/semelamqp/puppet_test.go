package semelamqp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// puppet is a broker that does as its test wants: it sends what waits to whoever
// consumes, gives each copy the verdict that was set, and notes what is said of
// messages. A real one cannot be told to refuse or to dawdle, and takes seconds
// to start.
type puppet struct {
	t       testing.TB
	url     string
	news    chan struct{} // has one when something was said
	mu      sync.Mutex
	lines   []*puppetLine
	waiting []string      // the bodies that the next consumer gets
	will    verdict       // of the copies to come
	mute    uint32        // a class and its method that get no answer
	unheard chan struct{} // closed when the first of those has come
	copies  int           // that came
	cancels int           // of consumers
	said    []string      // such as "1 ack 2", of the first line's tag 2
}

// verdict is what becomes of a copy.
type verdict uint8

const (
	kept verdict = iota
	refused
	unroutable
	silence // until confirm
)

// puppetLine is one of its connections.
type puppetLine struct {
	net.Conn
	p        *puppet
	n        int
	confirms map[uint16]uint64 // of a channel, so far
	late     []func()
	tags     uint64
}

func newPuppet(t testing.TB) *puppet {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &puppet{t: t, url: fmt.Sprintf("amqp://guest:guest@%s/", l.Addr()), news: make(chan struct{}, 1)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			line := &puppetLine{Conn: c, p: p, n: len(p.lines) + 1, confirms: map[uint16]uint64{}}
			p.lines = append(p.lines, line)
			p.mu.Unlock()
			go line.serve()
		}
	}()
	return p
}

// holds sets what waits for the next consumer.
func (p *puppet) holds(bodies ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = bodies
}

// next is what a Source is given of messages that wait.
func (p *puppet) next(s *Source, bodies ...string) (ds []*delivery) {
	p.t.Helper()
	p.holds(bodies...)
	for len(ds) < len(bodies) {
		more, err := s.Next(p.t.Context(), len(bodies)-len(ds))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, d := range more {
			ds = append(ds, d.(*delivery))
		}
	}
	return ds
}

// hears checks all that was said of messages, when there is as much as wanted.
func (p *puppet) hears(want ...string) {
	p.t.Helper()
	late := time.After(10 * time.Second)
	for {
		p.mu.Lock()
		said := slices.Clone(p.said)
		p.mu.Unlock()
		over := len(said) >= len(want)
		if !over {
			select {
			case <-p.news:
				continue
			case <-late:
			}
		}
		if !slices.Equal(said, want) {
			p.t.Errorf("it was told %q, want %q", said, want)
		}
		return
	}
}

// decides sets what becomes of copies from now on.
func (p *puppet) decides(v verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.will = v
}

// confirm confirms the copies of which nothing was said.
func (p *puppet) confirm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		for _, say := range l.late {
			say()
		}
		l.late = nil
	}
}

// came counts the copies.
func (p *puppet) came() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copies
}

// ignores makes it leave one call without an answer: the next of its kind.
func (p *puppet) ignores(class, method uint16) (came chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute, p.unheard = uint32(class)<<16|uint32(method), make(chan struct{})
	return p.unheard
}

// tells sends a method to all its lines.
func (p *puppet) tells(class, method uint16, fields ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		l.method(0, class, method, fields...)
	}
}

// cut ends the connections that there are.
func (p *puppet) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		_ = l.Close()
	}
}

// method sends a method of AMQP. A string is a short string there, a []byte a
// long one. A closed connection gets nothing.
func (l *puppetLine) method(ch, class, method uint16, fields ...any) {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, class), method)
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			b = append(append(b, byte(len(f))), f...)
		case []byte:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
		default:
			b, _ = binary.Append(b, binary.BigEndian, f)
		}
	}
	l.frame(1, ch, b)
}

// content sends a message's header and body.
func (l *puppetLine) content(ch uint16, body string) {
	b := binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, uint64(len(body)))
	l.frame(2, ch, append(b, 0, 0)) // no properties
	l.frame(3, ch, []byte(body))
}

func (l *puppetLine) frame(kind byte, ch uint16, payload []byte) {
	b := binary.BigEndian.AppendUint32([]byte{kind, byte(ch >> 8), byte(ch)}, uint32(len(payload)))
	_, _ = l.Write(append(append(b, payload...), 0xCE))
}

// serve answers until the line is cut.
func (l *puppetLine) serve() {
	r := bufio.NewReader(l)
	if _, err := r.Discard(len("AMQP0091")); err != nil {
		return
	}
	l.method(0, 10, 10, byte(0), byte(9), []byte{}, []byte("PLAIN"), []byte("en_US"))
	for {
		var head [7]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		l.p.mu.Lock()
		l.answer(head[0], binary.BigEndian.Uint16(head[1:]), payload[:len(payload)-1])
		l.p.mu.Unlock()
	}
}

func (l *puppetLine) answer(kind byte, ch uint16, b []byte) {
	if kind == 2 { // of a copy, which has a body of one frame, or of none
		l.copied(ch)
	}
	if kind != 1 {
		return
	}
	class, method, rest := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), b[4:]
	if is := uint32(class)<<16 | uint32(method); is == l.p.mute {
		close(l.p.unheard)
		l.p.mute = 0
		return
	}
	short := func(at int) string { return string(rest[at+1 : at+1+int(rest[at])]) }
	switch [2]uint16{class, method} {
	case [2]uint16{10, 11}: // start-ok: tune
		l.method(ch, 10, 30, uint16(100), uint32(1<<17), uint16(0))
	case [2]uint16{10, 40}: // open
		l.method(ch, 10, 41, "")
	case [2]uint16{20, 10}: // channel.open
		l.method(ch, 20, 11, []byte{})
	case [2]uint16{10, 50}, [2]uint16{20, 40}, [2]uint16{60, 10}, [2]uint16{85, 10}: // close, close, qos, confirm
		l.method(ch, class, method+1)
	case [2]uint16{50, 10}: // declare
		l.method(ch, class, method+1, short(2), uint32(0), uint32(0))
	case [2]uint16{60, 30}: // cancel
		l.p.cancels++
		l.method(ch, class, method+1, short(0))
	case [2]uint16{60, 20}: // consume
		tag := short(3 + len(short(2)))
		l.method(ch, class, method+1, tag)
		for _, body := range l.p.waiting {
			l.tags++
			l.method(ch, 60, 60, tag, l.tags, byte(0), "", "q")
			l.content(ch, body)
		}
		l.p.waiting = nil
	case [2]uint16{60, 80}:
		l.said("ack", rest)
	case [2]uint16{60, 120}:
		l.said("nack", rest)
	}
}

// said notes what was said of a tag, and by which bits.
func (l *puppetLine) said(word string, b []byte) {
	text := fmt.Sprintf("%d %s %d", l.n, word, binary.BigEndian.Uint64(b))
	if b[8]&1 != 0 {
		text += " and all before"
	}
	if b[8]&2 != 0 {
		text += " again"
	}
	l.p.said = append(l.p.said, text)
	select {
	case l.p.news <- struct{}{}:
	default:
	}
}

// copied gives a copy its verdict.
func (l *puppetLine) copied(ch uint16) {
	l.p.copies++
	l.confirms[ch]++
	n := l.confirms[ch]
	ack := func() { l.method(ch, 60, 80, n, byte(0)) }
	switch l.p.will {
	case kept:
		ack()
	case refused:
		l.method(ch, 60, 120, n, byte(0))
	case unroutable: // and confirmed, for nothing is left to do
		l.method(ch, 60, 50, uint16(312), "NO_ROUTE", "", "q")
		l.content(ch, "")
		ack()
	case silence:
		l.late = append(l.late, ack)
	}
}
