// Package faultproxy is a TCP proxy that acts as a bad network between a client
// and a server of a test: it loses, cuts, delays and holds back data.
package faultproxy

import (
	"fmt"
	"time"
)

// Kind is the fault of a connection.
type Kind uint8

const (
	// None forwards everything.
	None Kind = iota
	// Refuse resets the connection at the first byte that the client sends.
	// Nothing is forwarded.
	Refuse
	// CutRequest forwards Fault.After bytes of the client, then resets both
	// sides.
	CutRequest
	// CutReply forwards Fault.After bytes of the server, then resets the client,
	// which may have read a part.
	CutReply
	// Swallow forwards the client's bytes and Fault.After bytes of the server. It
	// drops the server's next bytes and resets the client: the request is
	// carried out, but its answer is lost.
	Swallow
	// Delay holds each piece of data, in both directions, for Fault.Delay. The
	// client's bytes arrive even if the client has closed the connection.
	Delay
	// HalfClose forwards Fault.After bytes of the client, then closes the
	// direction to the server. Replies still pass.
	HalfClose
	// Stall forwards Fault.After bytes of the client, then nothing more in either
	// direction, until the client closes the connection.
	Stall
	kinds // how many
)

var kindNames = [...]string{
	None: "none", Refuse: "refuse", CutRequest: "cut request", CutReply: "cut reply", Swallow: "swallow reply",
	Delay: "delay", HalfClose: "half close", Stall: "stall",
}

// String is the kind in words.
func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Fault is what becomes of one connection.
type Fault struct {
	Kind  Kind
	After int           // bytes; see Kind
	Delay time.Duration // of each piece, for Delay
}

// Plan is asked once for each connection, n counting from 1. It may be called
// from several goroutines at once.
type Plan func(n int) Fault

// Mix is what Chance draws from. The zero Mix has all kinds.
type Mix struct {
	Kinds    []Kind        // nil: all but None
	MaxAfter int           // After is less than that; 0: always 0
	MaxDelay time.Duration // Delay is less than that; 0: 10 ms
}

// Chance plans a fault with probability p, of the kinds of m, each as often as
// the others, in an order that seed determines.
func Chance(seed uint64, p float64, m Mix) Plan {
	if m.Kinds == nil {
		for k := None + 1; k < kinds; k++ {
			m.Kinds = append(m.Kinds, k)
		}
	}
	if m.MaxDelay <= 0 {
		m.MaxDelay = 10 * time.Millisecond
	}
	return func(n int) Fault {
		h := mix(seed ^ mix(uint64(n)))
		if float64(h>>11)/(1<<53) >= p {
			return Fault{}
		}
		f := Fault{Kind: m.Kinds[mix(h+1)%uint64(len(m.Kinds))], Delay: time.Duration(mix(h+2) % uint64(m.MaxDelay))}
		if m.MaxAfter > 0 {
			f.After = int(mix(h+3) % uint64(m.MaxAfter))
		}
		return f
	}
}

// mix spreads the bits of x over all 64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
