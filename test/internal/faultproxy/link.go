package faultproxy

import (
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection: two pumps, and the fault that is between them.
type link struct {
	p              *Proxy
	fault          Fault
	client, server *net.TCPConn

	once sync.Once
	cut  chan struct{} // closed by end
	late sync.Once
}

const pieceSize = 32 << 10

// end resets both sides, which ends both pumps.
func (l *link) end() {
	l.once.Do(func() {
		close(l.cut)
		reset(l.client)
		reset(l.server)
	})
}

// strike counts the fault, once for a connection.
func (l *link) strike() { l.late.Do(func() { l.p.strike(l.fault.Kind) }) }

// requests forwards what the client sends.
func (l *link) requests() {
	buf := make([]byte, pieceSize)
	for passed := 0; ; {
		n, err := l.client.Read(buf)
		if n > 0 {
			piece, last := l.request(buf[:n], passed)
			if !l.write(l.server, piece) {
				return
			}
			if passed += len(piece); last {
				l.strikeRequest()
				return
			}
		}
		if err != nil {
			_ = l.server.CloseWrite() // the client has no more to say; it may yet listen
			return
		}
	}
}

// request is what of a piece is forwarded, and whether the fault strikes then.
func (l *link) request(piece []byte, passed int) (part []byte, last bool) {
	switch l.fault.Kind {
	case CutRequest, HalfClose, Stall:
		if passed+len(piece) > l.fault.After {
			return piece[:max(0, l.fault.After-passed)], true
		}
	}
	return piece, false
}

func (l *link) strikeRequest() {
	l.strike()
	switch l.fault.Kind {
	case CutRequest:
		l.end()
	case HalfClose:
		_ = l.server.CloseWrite()
		_, _ = io.Copy(io.Discard, l.client) // until it hangs up
	case Stall:
		_, _ = io.Copy(io.Discard, l.client)
		l.end()
	}
}

// replies forwards what the server sends.
func (l *link) replies() {
	buf := make([]byte, pieceSize)
	for passed := 0; ; {
		n, err := l.server.Read(buf)
		if n > 0 {
			piece, last := l.reply(buf[:n], passed)
			if l.stalled() {
				return
			}
			if !l.write(l.client, piece) {
				l.end()
				return
			}
			if passed += len(piece); last {
				l.strike()
				l.end()
				return
			}
		}
		if err != nil {
			_ = l.client.CloseWrite()
			return
		}
	}
}

// reply is what of a piece is forwarded, and whether the fault strikes then.
func (l *link) reply(piece []byte, passed int) (part []byte, last bool) {
	if passed+len(piece) <= l.fault.After {
		return piece, false
	}
	switch l.fault.Kind {
	case CutReply:
		return piece[:max(0, l.fault.After-passed)], true
	case Swallow:
		return nil, true
	}
	return piece, false
}

// stalled waits for the end of a connection that stands still.
func (l *link) stalled() bool {
	if l.fault.Kind != Stall {
		return false
	}
	l.strike()
	select {
	case <-l.cut:
	case <-l.p.ctx.Done():
	}
	return true
}

// write forwards a piece, late if that is the fault.
func (l *link) write(to *net.TCPConn, piece []byte) bool {
	if l.fault.Kind == Delay {
		l.strike()
		t := time.NewTimer(l.fault.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-l.p.ctx.Done():
			return false
		}
	}
	_, err := to.Write(piece)
	return err == nil
}
