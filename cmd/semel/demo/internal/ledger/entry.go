package ledger

import (
	"encoding/json"
	"fmt"
)

// ID names a request: two tenants may use the same key.
type ID struct{ Tenant, Key string }

// Kind is the kind of a line of the journal.
type Kind string

// The kinds of lines.
const (
	Boot   Kind = "boot"   // a process has begun; the requests of the one before are gone
	Begin  Kind = "begin"  // a request has arrived
	Paid   Kind = "charge" // the effect
	Stale  Kind = "stale"  // a request was refused, because its fence is not above the closed one
	End    Kind = "end"    // a request is answered
	Closed Kind = "closed" // a final "it did not happen", for every fence up to this one
	Asked  Kind = "asked"  // the ledger has answered a question about a key
)

// Entry is a line of the journal. Which fields are set depends on Kind.
type Entry struct {
	Kind   Kind   `json:"t"`
	PID    int    `json:"pid,omitempty"`    // Boot
	Run    int    `json:"run,omitempty"`    // Begin, Paid, Stale, End: which request of this file
	Tenant string `json:"tenant,omitempty"` // all that speak of a key
	Key    string `json:"key,omitempty"`
	Fence  uint64 `json:"fence,omitempty"`  // Begin, Paid, Closed; 0: none was sent
	Order  string `json:"order,omitempty"`  // Paid
	Amount int64  `json:"amount,omitempty"` // Paid: in cents
	Charge int    `json:"charge,omitempty"` // Paid: its number, from 1
	Answer Answer `json:"answer,omitempty"` // Asked
}

// Answer is the answer to a question about a key.
type Answer string

// The answers.
const (
	Yes    Answer = "yes"     // it happened
	No     Answer = "no"      // it did not, and never will
	Unsure Answer = "unknown" // a request is still being worked on
)

// ID is the request that the line speaks of.
func (e *Entry) ID() ID { return ID{e.Tenant, e.Key} }

// Receipt is what a payment is answered with: the same bytes each time that
// one asks for the same charge.
func (e *Entry) Receipt() []byte {
	b, err := json.Marshal(receipt{fmt.Sprintf("ch-%06d", e.Charge), e.Order, e.Amount})
	if err != nil { // text and numbers always can be encoded
		panic(fmt.Sprintf("ledger: receipt: %v", err))
	}
	return append(b, '\n')
}

type receipt struct {
	Receipt string `json:"receipt"`
	Order   string `json:"order"`
	Amount  int64  `json:"amount"`
}
