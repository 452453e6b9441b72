//go:build unix

package chaos

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// desk is where workers are given work, and tell what they do. It keeps the
// ledger for them.
type desk struct {
	t      testing.TB
	ledger *ledger
	script script
	ln     net.Listener
	all    sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	faults map[string]int // that workers have met
}

// script is what a test does with its workers. Its methods are called for many
// lanes at once, and may block: the lane then stands still.
type script interface {
	// next is what a lane is to run.
	next(v *visitor) reply
	// reached is told where a lane is, and whether the lane had stood still.
	reached(v *visitor, p point, key string, fence uint64) (held bool)
	// answered is told how the run of the lane's key has ended.
	answered(v *visitor, q question)
	// left is told that the lane is no more. Its key, if any, got no answer.
	left(v *visitor)
}

// visitor is a lane of a worker, as the desk sees it.
type visitor struct {
	worker int
	key    string // the key that it runs; empty: none
}

func openDesk(t testing.TB, l *ledger, s script) *desk {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, ledger: l, script: s, ln: ln, conns: map[net.Conn]bool{}, faults: map[string]int{}}
	d.all.Go(d.accept)
	t.Cleanup(d.close)
	return d
}

func (d *desk) addr() string { return d.ln.Addr().String() }

// close sends all lanes away, and waits until they are gone.
func (d *desk) close() {
	_ = d.ln.Close()
	d.mu.Lock()
	for c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.all.Wait()
}

func (d *desk) accept() {
	for {
		c, err := d.ln.Accept()
		if err != nil {
			return // closed
		}
		d.mu.Lock()
		d.conns[c] = true
		d.mu.Unlock()
		d.all.Go(func() { d.serve(c) })
	}
}

func (d *desk) serve(c net.Conn) {
	v := &visitor{}
	defer func() {
		d.mu.Lock()
		delete(d.conns, c)
		d.mu.Unlock()
		_ = c.Close()
		d.script.left(v)
	}()
	l := newLine(c)
	for {
		var q question
		if err := l.in.Decode(&q); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !isNet(err) {
				d.t.Errorf("a worker said what cannot be read: %v", err)
			}
			return
		}
		if err := l.out.Encode(d.reply(v, q)); err != nil {
			return // it was killed meanwhile
		}
	}
}

func isNet(err error) bool {
	var e net.Error
	return errors.As(err, &e) || errors.Is(err, net.ErrClosed)
}

func (d *desk) reply(v *visitor, q question) (r reply) {
	switch q.Do {
	case hello:
		v.worker = q.Worker
	case next:
		r = d.script.next(v)
		v.key = r.Key
	case reach:
		if q.Point == afterSettle {
			d.ledger.settled(q.Key, q.Fence)
		}
		r.Held = d.script.reached(v, q.Point, q.Key, q.Fence)
	case pay:
		r.Body, r.OK = d.ledger.pay(v.worker, q.Key, q.Attempt, q.Fence)
	case ask:
		r.Body, r.OK = d.ledger.ask(q.Key, q.Fence)
	case answer:
		v.key = ""
		switch {
		case q.Class == done:
			d.ledger.answered(q.Key, q.Body)
		case q.Class == unexpected:
			d.t.Errorf("%s: %s", q.Key, q.Text)
		case q.Fence != 0:
			d.ledger.excuse(q.Key, q.Fence)
		}
		d.script.answered(v, q)
	case tell:
		d.mu.Lock()
		for what, n := range q.Faults {
			d.faults[what] += n
		}
		d.mu.Unlock()
	default:
		d.t.Errorf("a worker asked %q", q.Do)
	}
	return r
}
