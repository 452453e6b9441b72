package consumetest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

func publishEach(ctx context.Context, b Broker, messages iter.Seq[consume.Message]) error {
	for m := range messages {
		b.Publish(nil, m)
	}
	return ctx.Err()
}

func TestReportLoad_GoodBroker_Passes(t *testing.T) {
	for name, open := range map[string]func() Broker{"a queue in memory": func() Broker { return newQueue() }, "a log in memory": func() Broker { return newPartitions() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Harness{Store: inMemory, Open: func(testing.TB) Broker { return open() }}
			ReportLoad(t, name, h, Load{Messages: 1000, Kills: 5, Publish: publishEach})
			ReportLoad(t, name, h, Load{Messages: 100, Publish: publishEach, Unprotected: true})
		})
	}
}

func TestReportLoad_BrokerAcksBeforeRunning_Fails(t *testing.T) {
	t.Parallel()
	h := Harness{Store: inMemory, Patience: 5 * time.Second, Open: func(testing.TB) Broker {
		q := newQueue()
		q.defect = func(d *queueDelivery) driver.Delivery {
			ackNow(d)
			return &broken{queueDelivery: d, ack: nothing}
		}
		return q
	}}
	failed := complaints(t, func(t testing.TB) {
		ReportLoad(t, "a broken queue", h, Load{Messages: 1000, Kills: 5, Publish: publishEach})
	})
	if len(failed) == 0 {
		t.Error("the load passed, although messages of killed members are lost")
	}
}

func TestReportLoad_ControlWithoutDuplicates_Fails(t *testing.T) {
	h := Harness{Store: inMemory, Open: func(testing.TB) Broker { return newQueue() }}
	failed := complaints(t, func(t testing.TB) {
		ReportLoad(t, "a queue in memory", h, Load{Messages: 10, Unprotected: true, Publish: func(ctx context.Context, b Broker, messages iter.Seq[consume.Message]) error {
			sent := map[string]bool{}
			for m := range messages {
				if !sent[string(m.Body)] {
					b.Publish(nil, m)
				}
				sent[string(m.Body)] = true
			}
			return nil
		}})
	})
	if len(failed) == 0 {
		t.Error("a control without an effect that came twice passed")
	}
}

func TestReportLoad_PublishFails_ShowsItsError(t *testing.T) {
	t.Parallel()
	h := Harness{Store: inMemory, Open: func(testing.TB) Broker { return newQueue() }}
	failed := complaints(t, func(t testing.TB) {
		ReportLoad(t, "a queue in memory", h, Load{Messages: 1000, Kills: 5, Publish: func(context.Context, Broker, iter.Seq[consume.Message]) error {
			return errors.New("the topic is gone")
		}})
	})
	if len(failed) != 1 || !strings.Contains(failed[0], "publish: the topic is gone") {
		t.Errorf("the load says %q, want the error of Publish", failed)
	}
}

// absent is a broker of which some members cannot be started.
type absent struct {
	*queue
	refused  map[int]bool // by the number of the connection
	made     int
	errStart error
	states   int // how often the load has asked for the state
}

func (a *absent) State(testing.TB) string {
	a.states++
	return "nobody reads"
}

func (a *absent) Connect(t testing.TB) Conn {
	a.made++
	if a.refused[a.made] {
		return refusedConn{a.queue.Connect(t), a.errStart}
	}
	return a.queue.Connect(t)
}

type refusedConn struct {
	Conn
	err error
}

func (c refusedConn) Info(context.Context) (driver.Info, error) { return driver.Info{}, c.err }

// A load whose members cannot be started shows why, and does not wait for their messages.
func TestReportLoad_ServeEnds_ShowsItsErrorAtOnce(t *testing.T) {
	for name, refused := range map[string]map[int]bool{"at the start": {2: true}, "after the last kill": {7: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := &absent{queue: newQueue(), refused: refused, errStart: errors.New("the topic is busy")}
			h := Harness{Store: inMemory, Open: func(testing.TB) Broker { return broker }}
			failed := complaints(t, func(t testing.TB) {
				ReportLoad(t, "a queue in memory", h, Load{Messages: 2000, Kills: 5, Publish: publishEach})
			})
			if len(failed) != 1 || !strings.Contains(failed[0], "the topic is busy") {
				t.Errorf("the load says %q, want the error of Serve, and not that it has waited in vain", failed)
			}
			if broker.states == 0 {
				t.Error("the load does not tell the state of the broker")
			}
		})
	}
}

// With a disturbance a member that cannot be started is started again.
func TestReportLoad_ServeEndsInDisturbance_IsStartedAgain(t *testing.T) {
	t.Parallel()
	h := Harness{Store: inMemory, Open: func(testing.TB) Broker {
		return &absent{queue: newQueue(), refused: map[int]bool{3: true, 4: true, 6: true}, errStart: errors.New("the broker restarts")}
	}}
	ReportLoad(t, "a queue in memory", h, Load{Messages: 1000, Kills: 5, Publish: publishEach, Disturb: func() {}})
}
