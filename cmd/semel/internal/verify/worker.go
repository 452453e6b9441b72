package verify

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/semel-go/semel/store"
)

// order is a line to a worker: the number of the key to race for.
type order struct {
	Key int `json:"key"`
}

// done is a worker's answer to it.
type done struct {
	Error string `json:"error,omitempty"`
	Won   int    `json:"won"`   // how many of its claims did
	Owner string `json:"owner"` // of the record that it found
	Fence uint64 `json:"fence"`
	Sent  string `json:"sent,omitempty"` // the body that the winner has settled with
}

// workerKey is the i-th key that processes race for.
func workerKey(tenant string, i int) store.Key {
	return store.Key{Operation: Operation, Tenant: tenant, Value: fmt.Sprint("processes/", i)}
}

// Work is what a worker does: it races for each key that it reads the number
// of, with parallel callers, settles if it wins, and answers. It returns when
// in ends.
func Work(ctx context.Context, st store.Store, tenant string, parallel int, in io.Reader, out io.Writer) error {
	p := newProbe(&Target{Stores: []store.Store{st}}, &Options{Parallel: parallel}, tenant)
	answers := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	if err := answers.Encode(done{}); err != nil { // it is ready
		return err
	}
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("an order that cannot be read: %w", err)
		}
		d, err := p.obey(ctx, o)
		if err != nil {
			d.Error = err.Error()
		}
		if err := answers.Encode(d); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (p *probe) obey(ctx context.Context, o order) (d done, err error) {
	n := p.o.Parallel
	found := make([]store.Found, n)
	err = pack(n, func(g int) (err error) {
		found[g], err = p.store(g).Claim(ctx, p.proposal(workerKey(p.tenant, o.Key), store.Processing))
		return err
	})
	if err != nil {
		return d, err
	}
	d.Owner, d.Fence = hex.EncodeToString(found[0].Record.Owner[:]), found[0].Record.Fence
	for g := range found {
		if !found[g].Won {
			continue
		}
		d.Won++
		s := p.settlement(store.Completed, long)
		if refused, err := lost(p.store(g).Settle(ctx, found[g].Record.Lease(), s)); err != nil {
			return d, err
		} else if refused {
			continue // the comparison of the records shows it
		}
		d.Owner, d.Fence, d.Sent = hex.EncodeToString(found[g].Record.Owner[:]), found[g].Record.Fence, hex.EncodeToString(s.Outcome.Body)
	}
	return d, nil
}
