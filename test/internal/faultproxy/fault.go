// Package faultproxy is a TCP proxy that loses, cuts, delays and holds back
// what passes through it, as it is told: a bad network between a client and a
// server of a test.
package faultproxy

import (
	"fmt"
	"time"
)

// Kind is what goes wrong with a connection.
type Kind uint8

const (
	// None lets everything pass.
	None Kind = iota
	// Refuse resets the connection at the first byte that the client sends.
	// Nothing is forwarded.
	Refuse
	// CutRequest forwards Fault.After bytes of what the client sends, then
	// resets both sides.
	CutRequest
	// CutReply forwards Fault.After bytes of what the server sends, then
	// resets the client: it may have read a part.
	CutReply
	// Swallow forwards what the client sends, and once the server has sent
	// Fault.After bytes drops what it sends next, and resets the client: the
	// request was carried out, and nobody is told.
	Swallow
	// Delay holds each piece of what passes, in both directions, for
	// Fault.Delay. What the client has sent arrives even if it has given up
	// meanwhile.
	Delay
	// HalfClose forwards Fault.After bytes of what the client sends, then
	// tells the server that there is no more. Replies go on.
	HalfClose
	// Stall forwards Fault.After bytes of what the client sends, then nothing
	// more in either direction, until the client gives up.
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
