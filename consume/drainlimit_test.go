package consume_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// polling is a source whose Next ends its poll although its context has ended, as those of SQS
// and NATS do.
type polling struct {
	*source
	poll time.Duration
}

func (p *polling) Next(ctxt, int) ([]driver.Delivery, error) {
	time.Sleep(p.poll)
	return nil, nil
}

func TestServe_ContextEndsDuringLongPoll_ReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{Drain: time.Second}), &polling{newSource(), 30 * time.Second})
		synctest.Wait()
		if took := r.end(); r.err != nil || took != 30*time.Second {
			t.Errorf("Serve ended after %v with %v; want no error at the end of the poll", took, r.err)
		}
	})
}

// The error of a Serve that does not wait any longer names the part that has not ended.
func TestServe_EndTakesTooLong_NamesTheCause(t *testing.T) {
	slowly := func() error {
		time.Sleep(10 * time.Second) // the time-out of a settlement
		return errPlain
	}
	for want, open := range map[string]func() driver.Source{
		"the broker does not answer": func() driver.Source {
			s := newSource(keyed("k"))
			s.forward, s.ack, s.nak = slowly, slowly, slowly
			return s
		},
		"Next of the source": func() driver.Source { return &polling{newSource(), time.Hour} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open()
			h := func(ctx ctxt, _ *semel.Execution, _ *consume.Message) error {
				<-ctx.Done()
				return semel.Final(errPlain)
			}
			r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Drain: time.Second}), s)
			synctest.Wait()
			if r.end(); r.err == nil || !strings.Contains(r.err.Error(), want) {
				t.Errorf("Serve returned %v, want %q in it", r.err, want)
			}
			time.Sleep(2 * time.Hour) // for the calls that have not returned
		})
	}
}
