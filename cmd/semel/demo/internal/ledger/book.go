package ledger

import (
	"errors"
	"os"
	"sync"

	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
)

// Book is the ledger without its HTTP server. Safe for concurrent use.
type Book struct {
	mu sync.Mutex
	j  *journal.Journal[Entry]
	s  *State
}

// ErrStale refuses a charge that the ledger has promised not to make.
var ErrStale = errors.New("ledger: this key is closed for requests with this fence")

// Open opens the book in the file at path, or begins a new one.
func Open(path string) (*Book, error) {
	s := NewState()
	j, err := journal.Open(path, s.Apply)
	if err != nil {
		return nil, err
	}
	b := &Book{j: j, s: s}
	if err := b.write(&Entry{Kind: Boot, PID: os.Getpid()}); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return b, nil
}

// Close closes the file.
func (b *Book) Close() error { return b.j.Close() }

// write adds a line and applies it. The caller holds mu, or is alone.
func (b *Book) write(e *Entry) error {
	if err := b.j.Append(e); err != nil {
		return err
	}
	b.s.Apply(e)
	return nil
}

// Begin notes that a request has arrived, and gives its number.
func (b *Book) Begin(id ID, fence uint64) (run int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := Entry{Kind: Begin, Run: b.s.Runs + 1, Tenant: id.Tenant, Key: id.Key, Fence: fence}
	return e.Run, b.write(&e)
}

// Charge is the effect. It does not ask whether the key was charged before:
// that is the point.
func (b *Book) Charge(run int, id ID, fence uint64, order string, amount int64) (Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := Entry{Kind: Paid, Run: run, Tenant: id.Tenant, Key: id.Key, Fence: fence, Order: order, Amount: amount, Charge: b.s.Charged + 1}
	if b.s.stale(id, fence) {
		return e, errors.Join(ErrStale, b.write(&Entry{Kind: Stale, Run: run, Tenant: id.Tenant, Key: id.Key, Fence: fence}))
	}
	return e, b.write(&e)
}

// End notes that a request is about to be answered.
func (b *Book) End(run int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write(&Entry{Kind: End, Run: run})
}

// Ask reports whether a key was charged. The fence of the caller must be above the
// fences of all requests that may be under way. Yes comes with the first charge.
// Before Ask returns No, it records the fence: from then on no request with this
// fence or a lower one can charge.
func (b *Book) Ask(id ID, fence uint64) (Answer, Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer, charge := No, Entry{}
	if charges := b.s.Charges[id]; len(charges) > 0 {
		answer, charge = Yes, charges[0]
	} else if b.s.busy[id] > 0 {
		answer = Unsure
	} else if err := b.write(&Entry{Kind: Closed, Tenant: id.Tenant, Key: id.Key, Fence: fence}); err != nil {
		return Unsure, charge, err
	}
	return answer, charge, b.write(&Entry{Kind: Asked, Tenant: id.Tenant, Key: id.Key, Fence: fence, Answer: answer})
}
