package deliver

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// tenants limits how many messages of each tenant are sent at once, and keeps the pauses that
// the service asks for one tenant. A message that may not be sent yet waits for its turn
// outside of the runner, where it holds no place that another tenant's message could use.
// The messages of a tenant get their turns in the order in which they came.
type tenants struct {
	maxRequests int           // messages of one tenant at once; 0: no limit
	longest     time.Duration // the longest pause
	// notify is called when messages of a tenant begin to wait. Reason says why the service
	// asks for a pause; empty: they wait for the limit.
	notify func(tenant, reason string)

	mu     sync.Mutex
	all    map[string]*tenant // tenants that have a message here, or a pause
	waited uint64             // messages that have begun to wait for the limit
}

// tenant is what tenants knows of one tenant. Its owner's mu guards it.
type tenant struct {
	owner   *tenants
	name    string
	running int     // messages whose turn has come
	queue   []*turn // of the messages that wait
	pauses  pauses
	timer   *time.Timer // at the end of the pause; nil: there was none
}

func newTenants(maxRequests int, longest time.Duration, notify func(tenant, reason string)) *tenants {
	return &tenants{maxRequests: maxRequests, longest: longest, notify: notify, all: map[string]*tenant{}}
}

// enter returns the turn of a message. Earlier is the one for which it has waited, or nil. If the
// turn has not come, the message waits for it. The caller leaves each turn that has come.
func (ts *tenants) enter(name string, earlier *turn) *turn {
	t, limited := ts.turn(name, earlier)
	if limited {
		ts.notify(name, "")
	}
	return t
}

// turn is enter without the notice. Limited reports whether the message is the first one of
// its tenant that waits for the limit.
func (ts *tenants) turn(name string, earlier *turn) (t *turn, limited bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if earlier != nil && earlier.state == turnReady {
		return earlier, false
	}
	tn := ts.all[name]
	if tn == nil {
		tn = &tenant{owner: ts, name: name, pauses: pauses{longest: ts.longest}}
		ts.all[name] = tn
	}
	t = &turn{tenant: tn}
	tn.queue = append(tn.queue, t)
	if tn.next(); t.state == turnReady {
		return t, false
	}
	t.ready = make(chan struct{})
	t.reason = "the service has asked for a pause of its tenant's messages"
	if tn.pauses.until.IsZero() {
		t.reason = fmt.Sprintf("its tenant has as many requests in flight as --%s allows, which is %d", limit.TenantRequests.Option(), ts.maxRequests)
		ts.waited++
		limited = len(tn.queue) == 1
	}
	return t, limited
}

// next gives the next messages their turns. The caller holds mu.
func (tn *tenant) next() {
	for len(tn.queue) > 0 && (tn.owner.maxRequests == 0 || tn.running < tn.owner.maxRequests) {
		if _, ok := tn.pauses.admit(time.Now()); !ok {
			return
		}
		t := tn.queue[0]
		tn.queue[0] = nil
		tn.queue = tn.queue[1:]
		tn.running++
		t.state, t.probes = turnReady, !tn.pauses.until.IsZero()
		if t.ready != nil {
			close(t.ready)
		}
	}
	if tn.running > 0 || len(tn.queue) > 0 || !tn.pauses.until.IsZero() && time.Since(tn.pauses.until) < tn.owner.longest {
		return
	}
	if tn.timer != nil {
		tn.timer.Stop()
	}
	if tn.owner.all[tn.name] == tn {
		delete(tn.owner.all, tn.name)
	}
}

// pauseOver is called at the end of a pause. If no message of the tenant is here then, the
// pause is remembered for a while, so that the next one is longer.
func (tn *tenant) pauseOver() {
	tn.owner.mu.Lock()
	defer tn.owner.mu.Unlock()
	tn.next()
	if tn.owner.all[tn.name] == tn && !time.Now().Before(tn.pauses.until) {
		tn.timer.Reset(tn.owner.longest)
	}
}

// tenantCounts are for the metrics.
type tenantCounts struct {
	waiting      int    // messages that wait for the limit
	waited       uint64 // messages that have begun to
	paused       int    // tenants with a pause
	pausedQueued int    // messages that wait for the end of a pause
}

func (ts *tenants) counts() (c tenantCounts) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c.waited = ts.waited
	now := time.Now()
	for _, tn := range ts.all {
		switch {
		case tn.pauses.until.IsZero():
			c.waiting += len(tn.queue)
		case now.Before(tn.pauses.until), tn.running+len(tn.queue) > 0:
			c.paused++
			c.pausedQueued += len(tn.queue)
		}
	}
	return c
}

// turn is the turn of one message. It is a driver.Turn.
type turn struct {
	tenant *tenant
	reason string        // for which it has not come at once
	ready  chan struct{} // nil: it came at once
	state  turnState
	probes bool // the message is the one that tries after a pause
}

type turnState uint8

const (
	turnWaits turnState = iota
	turnReady
	turnLeft
)

// Error says why the message waits.
func (t *turn) Error() string { return t.reason }

// Ready implements driver.Turn.
func (t *turn) Ready() <-chan struct{} { return t.ready }

// isReady reports whether the message may go on.
func (t *turn) isReady() bool {
	t.tenant.owner.mu.Lock()
	defer t.tenant.owner.mu.Unlock()
	return t.state == turnReady
}

// Leave ends the turn, and the next message of the tenant gets its own. A second call does
// nothing.
func (t *turn) Leave() {
	tn := t.tenant
	tn.owner.mu.Lock()
	defer tn.owner.mu.Unlock()
	switch t.state {
	case turnLeft:
		return
	case turnWaits:
		if i := slices.Index(tn.queue, t); i >= 0 {
			tn.queue = slices.Delete(tn.queue, i, i+1)
		}
	case turnReady:
		tn.running--
		if t.probes {
			tn.pauses.probing = false
		}
	}
	t.state = turnLeft
	tn.next()
}

// outdated reports whether a pause has begun since the turn came.
func (t *turn) outdated() bool {
	t.tenant.owner.mu.Lock()
	defer t.tenant.owner.mu.Unlock()
	return !t.probes && !t.tenant.pauses.until.IsZero()
}

// pause begins a pause of the tenant after the failure of the message: see pauses.pause.
func (t *turn) pause(entered time.Time, after time.Duration, reason string) {
	if t.beginPause(entered, after) {
		t.tenant.owner.notify(t.tenant.name, reason)
	}
}

func (t *turn) beginPause(entered time.Time, after time.Duration) (closed bool) {
	tn := t.tenant
	tn.owner.mu.Lock()
	defer tn.owner.mu.Unlock()
	now := time.Now()
	closed = tn.pauses.pause(now, entered, after)
	if rest := tn.pauses.until.Sub(now); tn.timer == nil {
		tn.timer = time.AfterFunc(rest, tn.pauseOver)
	} else {
		tn.timer.Reset(rest)
	}
	return closed
}

// answered ends the pauses of the tenant: see pauses.answered. The messages that wait go on
// when the turn ends.
func (t *turn) answered(entered time.Time) {
	t.tenant.owner.mu.Lock()
	defer t.tenant.owner.mu.Unlock()
	t.tenant.pauses.answered(entered)
}
