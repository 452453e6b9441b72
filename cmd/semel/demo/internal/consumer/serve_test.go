package consumer

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/consume/driver"
)

// desk is a broker with its consumers, all in this process.
type desk struct {
	b    *pipeline.Broker
	plan *pipeline.Plan
	book *sql.DB
	o    Options
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	d := &desk{plan: pipeline.NewPlan(1, 40), o: Options{Book: filepath.Join(dir, "book.db"), Work: time.Millisecond}}
	var err error
	if d.b, err = pipeline.Start(t.Context(), filepath.Join(dir, "nats"), time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.b.Close)
	d.o.Broker = d.b.URL
	if d.book, err = OpenBook(t.Context(), d.o.Book); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.book.Close() })
	return d
}

// run sends the plan to n consumers, and gives what they have written down.
func (d *desk) run(t *testing.T, n int) []*State {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	var paths []string
	for range n {
		o := d.o
		o.Journal = filepath.Join(t.TempDir(), "journal")
		paths = append(paths, o.Journal)
		go func() { ended <- Serve(ctx, &o) }()
	}
	limited, enough := context.WithTimeout(t.Context(), 2*time.Minute)
	defer enough()
	p := pipeline.NewProducers(d.plan, d.b)
	p.Disturbed.Store(true)
	if err := p.Run(limited, 4); err != nil {
		t.Error(err)
	}
	cancel()
	var states []*State
	for i := range n {
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s := NewState()
		if err := journal.NewTail(paths[i], s.Apply).Update(); err != nil {
			t.Error(err)
		}
		states = append(states, s)
	}
	return states
}

func (d *desk) charges(t *testing.T) map[string][]int64 {
	t.Helper()
	all, err := Charges(t.Context(), d.book)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sum(states []*State) (runs int, reasons map[driver.Reason]int) {
	reasons = map[driver.Reason]int{}
	for _, s := range states {
		for _, n := range s.RunsOf {
			runs += n
		}
		for why, n := range s.Reasons {
			reasons[why] += n
		}
	}
	return runs, reasons
}

func TestServe_WithSemel_ChargesOnce(t *testing.T) {
	d := newDesk(t)
	d.o.Semel = true
	runs, reasons := sum(d.run(t, 2))
	charges := d.charges(t)
	for _, o := range d.plan.Orders {
		if got := charges[o.ID]; len(got) != 1 || got[0] != o.Amount {
			t.Errorf("%+v was charged %v", o, got)
		}
	}
	n, repeats := len(d.plan.Orders), d.plan.Messages-len(d.plan.Orders)-d.plan.Changes
	if runs != n || reasons[driver.ReasonDone] != n || reasons[driver.ReasonDuplicate] != repeats || reasons[driver.ReasonMismatch] != d.plan.Changes {
		t.Errorf("%d runs, %v", runs, reasons)
	}
	letters, err := d.b.Letters(t.Context())
	if err != nil || letters[driver.ReasonMismatch] != d.plan.Changes || len(letters) != 1 {
		t.Errorf("letters %v, %v", letters, err)
	}
}

func TestServe_KeyIsTheBrokersID_ChargesTwice(t *testing.T) {
	d := newDesk(t)
	d.o.Semel, d.o.BrokerKeys = true, true
	runs, _ := sum(d.run(t, 1))
	n := 0
	for _, of := range d.charges(t) {
		n += len(of)
	}
	if n != d.plan.Messages || runs != n {
		t.Errorf("%d charges in %d runs for %d messages", n, runs, d.plan.Messages)
	}
}

// A crash leaves a message that is noted but not charged.
func TestServe_NotedBeforeDone_LosesOrder(t *testing.T) {
	d := newDesk(t)
	lost := d.plan.Orders[3].ID
	if _, err := d.book.ExecContext(t.Context(), "INSERT INTO seen (message) VALUES (?)", lost); err != nil {
		t.Fatal(err)
	}
	runs, reasons := sum(d.run(t, 2))
	charges := d.charges(t)
	if len(charges[lost]) != 0 || len(charges) != len(d.plan.Orders)-1 {
		t.Errorf("%d orders were charged, and the lost one %v", len(charges), charges[lost])
	}
	if runs != reasons[driver.ReasonDone] || runs < len(charges) || reasons[driver.ReasonDuplicate] == 0 || runs+reasons[driver.ReasonDuplicate] != d.plan.Messages {
		t.Errorf("%d runs, %v", runs, reasons)
	}
}

func TestServe_NoBroker_Fails(t *testing.T) {
	dir := t.TempDir()
	err := Serve(t.Context(), &Options{Broker: "nats://127.0.0.1:1", Book: filepath.Join(dir, "b"), Journal: filepath.Join(dir, "j")})
	if err == nil || !strings.Contains(err.Error(), "nats") {
		t.Errorf("got %v", err)
	}
}
