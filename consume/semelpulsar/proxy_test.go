package semelpulsar_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
)

// proxy is the way of the members to the broker, which a test cuts. It tells the members
// apart by the tokens with which they authenticate, and for which the broker does not ask.
type proxy struct {
	broker string // an address
	mu     sync.Mutex
	lines  map[string][]net.Conn // by the member
	dead   map[string]bool
}

var (
	proxies   = map[*pulsartest.Server]*proxy{}
	proxiesMu sync.Mutex
)

// proxyOf is the proxy of a server. It listens until the end of the process.
func proxyOf(t testing.TB, s *pulsartest.Server) *proxy {
	t.Helper()
	proxiesMu.Lock()
	defer proxiesMu.Unlock()
	if p := proxies[s]; p != nil {
		return p
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", s.ProxyPort()))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{broker: s.URL()[len("pulsar://"):], lines: map[string][]net.Conn{}, dead: map[string]bool{}}
	proxies[s] = p
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// errNoMember is the error of a connection that names no member.
var errNoMember = errors.New("the first frame names no member")

// firstFrame is the frame by which a client connects, and the member in it.
func firstFrame(c net.Conn) (frame []byte, member string, _ error) {
	frame = make([]byte, 4)
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, "", err
	}
	rest := make([]byte, binary.BigEndian.Uint32(frame))
	if _, err := io.ReadFull(c, rest); err != nil {
		return nil, "", err
	}
	_, after, ok := bytes.Cut(rest, []byte("<"))
	name, _, ended := bytes.Cut(after, []byte(">"))
	if !ok || !ended {
		return nil, "", errNoMember
	}
	return append(frame, rest...), string(name), nil
}

func (p *proxy) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	frame, member, err := firstFrame(c)
	if err != nil {
		return
	}
	up, err := net.Dial("tcp", p.broker)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	p.mu.Lock()
	isDead := p.dead[member]
	p.lines[member] = append(p.lines[member], c, up)
	p.mu.Unlock()
	if isDead {
		return
	}
	if _, err := up.Write(frame); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, c) // ends when one side is cut
		_ = up.Close()
	}()
	_, _ = io.Copy(c, up)
}

// cut ends the connections of a member; one that is dead does not connect again.
func (p *proxy) cut(member string, dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead[member] = dead
	for _, c := range p.lines[member] {
		_ = c.Close()
	}
	delete(p.lines, member)
}
