package semelpulsar

import (
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// place is where an entry is: a message, or a batch of messages, which Pulsar stores and
// sends again as one.
type place struct {
	partition     int32
	ledger, entry int64
}

func placeOf(id pulsar.MessageID) place {
	return place{id.PartitionIdx(), id.LedgerID(), id.EntryID()}
}

// indexOf is the index of a message in its batch.
func indexOf(id pulsar.MessageID) int32 { return max(0, id.BatchIdx()) }

// entry is an entry of which a message is here, or waits for its time to go back.
type entry struct {
	// messages are those that have arrived, by their index; nil: it is settled.
	messages map[int32]*delivery
	here     int              // deliveries in messages
	back     pulsar.MessageID // a message that was given back; nil: none
	due      time.Time        // when the entry goes back
	timer    *time.Timer      // until then, while no message is here
}

// unsettled are the deliveries of a link that are not settled. The client sends a message
// again after each reconnect, and in an exclusive or a failover subscription after each
// message that goes back. A copy of a message that is here takes the place of the earlier
// copy and is no delivery of its own.
type unsettled struct {
	redeliver func(id pulsar.MessageID) // has the broker send the entry again

	mu      sync.Mutex
	entries map[place]*entry
	count   int  // also of those that the broker has taken away
	stopped bool // the broker gets back what is not acked when the link is closed
}

// arrived adds the delivery of a message that has arrived. It reports false if the
// message is here already, or waits for its time to go back.
func (u *unsettled) arrived(d *delivery) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := u.entries[d.place]
	if e == nil {
		e = &entry{messages: map[int32]*delivery{}}
		u.entries[d.place] = e
	}
	earlier, known := e.messages[d.index]
	switch {
	case earlier != nil:
		earlier.id = d.id
		return false
	case known && e.back != nil: // it comes again with the message that goes back
		return false
	}
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	e.messages[d.index] = d
	e.here++
	u.count++
	return true
}

// newest is the ID of the newest copy of a message.
func (u *unsettled) newest(d *delivery) pulsar.MessageID {
	u.mu.Lock()
	defer u.mu.Unlock()
	return d.id
}

// acked ends a delivery whose message was acked by an ID. It reports false if a newer
// copy has come meanwhile.
func (u *unsettled) acked(d *delivery, id pulsar.MessageID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if d.id != id {
		return false
	}
	u.end(d)
	return true
}

// giveBack ends a delivery whose message is to come again.
func (u *unsettled) giveBack(d *delivery, delay time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if e := u.entries[d.place]; e != nil && e.messages[d.index] == d {
		e.back = d.id
		e.dueAfter(delay)
	}
	u.end(d)
}

// dueAfter sets the time when the entry goes back, but never earlier than before.
func (e *entry) dueAfter(delay time.Duration) {
	if due := time.Now().Add(delay); due.After(e.due) {
		e.due = due
	}
}

// end removes a delivery. The caller holds mu.
func (u *unsettled) end(d *delivery) {
	if d.isOver {
		return
	}
	d.isOver = true
	u.count--
	e := u.entries[d.place]
	if e == nil || e.messages[d.index] != d {
		return // the broker has taken it away
	}
	e.messages[d.index] = nil
	e.here--
	u.release(d.place, e)
}

// release lets go of an entry if none of its messages is here. The caller holds mu.
func (u *unsettled) release(p place, e *entry) {
	switch {
	case e.here > 0:
	case e.back == nil || u.stopped:
		delete(u.entries, p)
	default:
		e.timer = time.AfterFunc(time.Until(e.due), func() { u.goBack(p, e) })
	}
}

// goBack has the broker send an entry again.
func (u *unsettled) goBack(p place, e *entry) {
	u.mu.Lock()
	isDue := u.entries[p] == e && e.here == 0
	if isDue {
		delete(u.entries, p)
	}
	u.mu.Unlock()
	if isDue {
		u.redeliver(e.back)
	}
}

// refuse gives back a message that has arrived and that no Next will return.
func (u *unsettled) refuse(id pulsar.MessageID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := placeOf(id)
	e := u.entries[p]
	if e == nil {
		u.redeliver(id)
		return
	}
	if earlier := e.messages[indexOf(id)]; earlier != nil {
		earlier.id = id
		return
	}
	e.back = id
	if e.timer == nil {
		u.release(p, e)
	}
}

// revoke takes away the messages of a partition that are here: the broker sends them to
// another member.
func (u *unsettled) revoke(partition int32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, e := range u.entries {
		if p.partition != partition {
			continue
		}
		for _, d := range e.messages {
			if d != nil {
				close(d.revoked)
			}
		}
		if e.timer != nil {
			e.timer.Stop()
		}
		delete(u.entries, p)
	}
}

// stop leaves what is given back to the end of the link.
func (u *unsettled) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopped = true
}

// left is how many deliveries are not settled.
func (u *unsettled) left() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// here is how many messages of a partition are here.
func (u *unsettled) here(partition int32) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, e := range u.entries {
		if p.partition == partition {
			n += e.here
		}
	}
	return n
}

// clear forgets the entries that wait for their time.
func (u *unsettled) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, e := range u.entries {
		if e.timer != nil {
			e.timer.Stop()
		}
		delete(u.entries, p)
	}
}
