//go:build unix

package chaos

import (
	"encoding/json"
	"net"
	"sync"
)

// A worker speaks with the test in questions and replies, one JSON value each,
// over a socket for each of its lanes.
type question struct {
	Do      do     `json:"do"`
	Worker  int    `json:"worker,omitempty"` // hello: its spec.ID
	Key     string `json:"key,omitempty"`
	Point   point  `json:"point,omitempty"`
	Fence   uint64 `json:"fence,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// The answer that a caller got, in a message of kind answer.
	Class     class  `json:"class,omitempty"`
	Body      string `json:"body,omitempty"`
	Text      string `json:"text,omitempty"`
	Replayed  bool   `json:"replayed,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"` // by its own clock, with the cause ErrLeaseLost
	// The number of injected faults of each kind, in a message of kind tell.
	Faults map[string]int `json:"faults,omitempty"`
}

type reply struct {
	Key  string `json:"key,omitempty"`  // next: the key to run; empty: no more
	Body string `json:"body,omitempty"` // pay, ask: the receipt
	OK   bool   `json:"ok,omitempty"`   // pay: it was done; ask: it had happened
	Held bool   `json:"held,omitempty"` // reach: the process was frozen here
}

type do string

const (
	hello  do = "hello"
	next   do = "next"
	reach  do = "reach"
	pay    do = "pay"
	ask    do = "ask"
	answer do = "answer"
	tell   do = "tell"
)

// point is a place in a call's life at which a process can be killed or frozen.
type point string

const (
	beforeClaim  point = "before claim"
	afterClaim   point = "after claim"
	beforeSwap   point = "before swap"
	afterSwap    point = "after swap"
	beforeEffect point = "in handler, before effect"
	afterEffect  point = "after effect"
	beforeSettle point = "before settle"
	afterSettle  point = "after settle, before answer"
	anywhere     point = "anywhere" // at a random time
)

// class is what became of one delivery.
type class string

const (
	done       class = "done"
	busy       class = "busy" // in progress, or the attempt waited for failed
	parked     class = "parked"
	leaseLost  class = "lease lost"
	notStored  class = "not stored"
	noStore    class = "unavailable"
	unexpected class = "unexpected"
)

// line is one end of a socket between a lane and the test. Safe for concurrent
// use.
type line struct {
	mu   sync.Mutex
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func newLine(c net.Conn) *line {
	return &line{conn: c, in: json.NewDecoder(c), out: json.NewEncoder(c)}
}

// put asks, and waits for the reply.
func (l *line) put(q question) (reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var r reply
	if err := l.out.Encode(q); err != nil {
		return r, err
	}
	return r, l.in.Decode(&r)
}
