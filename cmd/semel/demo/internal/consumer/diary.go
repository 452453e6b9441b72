package consumer

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// diary is the journal of this process. Safe for concurrent use.
type diary struct {
	mu   sync.Mutex
	j    *journal.Journal[Entry]
	fail context.CancelCauseFunc
}

// begin opens the journal. Fail is called if it cannot be written: a consumer
// that nobody can watch must not go on.
func begin(path string, fail context.CancelCauseFunc) (*diary, error) {
	j, err := journal.Open(path, func(*Entry) {})
	if err != nil {
		return nil, err
	}
	return &diary{j: j, fail: fail}, nil
}

func (d *diary) note(e *Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.j.Append(e); err != nil {
		d.fail(err)
	}
}

func (d *diary) boot() { d.note(&Entry{Kind: Boot, PID: os.Getpid()}) }

// of notes how far a message is.
func (d *diary) of(m *consume.Message, k Kind) {
	e := Entry{Kind: k, Seq: m.Origin.Offset}
	if k == Begun {
		e.Key, _ = m.Header(consume.KeyHeader)
	}
	d.note(&e)
}

// settled notes why a message is off our hands, and how long it took if that is
// measured.
func (d *diary) settled(m *consume.Message, why driver.Reason) {
	e := Entry{Kind: Settled, Seq: m.Origin.Offset, Reason: why}
	if _, calm := m.Header(pipeline.CalmHeader); calm && why == driver.ReasonDone && m.Deliveries == 1 {
		e.Took = time.Since(m.Published)
	}
	d.note(&e)
}

// watched is a source whose messages are noted.
type watched struct {
	driver.Source
	d *diary
}

// Next implements driver.Source.
func (w watched) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := w.Source.Next(ctx, limit)
	for _, d := range ds {
		w.d.of(d.Message(), Taken)
	}
	return ds, err
}
