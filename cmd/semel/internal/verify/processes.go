package verify

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/semel-go/semel/store"
)

var processRace = check{
	name:  "process-race",
	claim: "Of claims of one key by several processes at once, one wins, and every process finds the winner's record and outcome.",
	run: func(ctx context.Context, p *probe) (err error) {
		switch {
		case p.target.Start == nil:
			return fmt.Errorf("%w: the store lives in one process", errSkipped)
		case p.o.Processes == 0:
			return fmt.Errorf("%w: no process was asked for", errSkipped)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var team []*workerPipe
		defer func() {
			if err != nil {
				cancel() // one that hangs would be waited for
			}
			for _, h := range team {
				if cerr := h.end(); err == nil {
					err = cerr
				}
			}
		}()
		for range p.o.Processes {
			w, err := p.target.Start(ctx, p.tenant)
			if err != nil {
				return fmt.Errorf("start a process: %w", err)
			}
			team = append(team, newWorkerPipe(w))
		}
		for _, h := range team {
			if _, err := h.answer(ctx); err != nil {
				return err
			}
		}
		for i := range p.o.Keys {
			if err := p.processRace(ctx, team, i); err != nil {
				return err
			}
		}
		return nil
	},
}

// errSkipped is a check that the store need not pass.
var errSkipped = errors.New("there is nothing to try")

// processRace lets all processes race for a key.
func (p *probe) processRace(ctx context.Context, team []*workerPipe, i int) error {
	k := p.own(workerKey(p.tenant, i))
	for _, h := range team {
		if err := h.orders.Encode(order{i}); err != nil {
			return h.ended(err)
		}
	}
	wins, answers := 0, make([]done, len(team))
	var winner done
	for g, h := range team {
		d, err := h.answer(ctx)
		if err != nil {
			return err
		}
		if answers[g] = d; d.Won > 0 {
			wins, winner = wins+d.Won, d
		}
	}
	p.tried(len(team))
	if wins != 1 {
		p.broken("%q: %d claims of %d processes won, want 1", k.Value, wins, len(team))
		return nil
	}
	for _, d := range answers {
		if d.Owner != winner.Owner || d.Fence != winner.Fence {
			p.broken("%q: a process that lost finds the record of %.8s with fence %d, and the winner is %.8s with fence %d", k.Value, d.Owner, d.Fence, winner.Owner, winner.Fence)
		}
	}
	f, err := p.store(i).Get(ctx, k)
	if err != nil {
		return p.vanished(k, err)
	}
	r := &f.Record
	if o, b := hex.EncodeToString(r.Owner[:]), hex.EncodeToString(r.Outcome.Body); o != winner.Owner || b != winner.Sent || r.Fence != winner.Fence {
		p.broken("%q: the record is %v, of %.8s with fence %d and the outcome %.16s; the winner, %.8s with fence %d, has settled with %.16s", k.Value, r.State, o, r.Fence, b, winner.Owner, winner.Fence, winner.Sent)
	}
	return nil
}

// workerPipe talks to a worker process through two pipes.
type workerPipe struct {
	w       *Worker
	orders  *json.Encoder
	answers chan done
	gone    error // why answers was closed

	once sync.Once
	err  error // of its end
}

func newWorkerPipe(w *Worker) *workerPipe {
	h := &workerPipe{w: w, orders: json.NewEncoder(w.In), answers: make(chan done, 1)}
	go func() {
		defer close(h.answers)
		lines := json.NewDecoder(w.Out)
		for {
			var d done
			if h.gone = lines.Decode(&d); h.gone != nil {
				return
			}
			h.answers <- d
		}
	}()
	return h
}

// answer is the worker's next.
func (h *workerPipe) answer(ctx context.Context) (done, error) {
	select {
	case d, ok := <-h.answers:
		if !ok {
			return d, h.ended(h.gone)
		}
		if d.Error != "" {
			return d, errors.New(d.Error)
		}
		return d, nil
	case <-ctx.Done():
		return done{}, ctx.Err()
	}
}

// ended returns the error of a worker that ended too early: its own message if it
// wrote one, otherwise err.
func (h *workerPipe) ended(err error) error {
	if werr := h.end(); werr != nil {
		return werr
	}
	return fmt.Errorf("a process has ended: %w", err)
}

// end lets the worker go, and waits until it has.
func (h *workerPipe) end() error {
	h.once.Do(func() {
		h.err = h.w.In.Close()
		for range h.answers { // later answers do not matter
		}
		if err := h.w.Wait(); err != nil {
			h.err = fmt.Errorf("a process has ended: %w", err)
		}
	})
	return h.err
}

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
