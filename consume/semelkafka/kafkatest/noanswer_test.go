package kafkatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// The network loses all packets of one connection, and nobody is told, at each request of a
// batch, or at its answer. PostgreSQL answers other connections. The member stays in its
// group, so nobody else takes its partitions: it has to go on by itself. It does so within
// StoreTimeout, and the time for which the server keeps the locks of that connection. No
// message is lost, and none has two effects.
func TestServeBatches_ConnectionSilent_PartitionsGoOn(t *testing.T) {
	t.Parallel()
	texts := map[form][]string{
		keyed:   {"begin isolation", "COMMIT"},
		offsets: {"begin isolation", "SET next_offset", "commit\x00"},
	}
	forms(t, func(t *testing.T, f form) {
		for _, after := range []bool{false, true} {
			for _, text := range texts[f] {
				t.Run(fmt.Sprintf("%q, answered: %v", text, after), func(t *testing.T) {
					t.Parallel()
					_, seed := fake(t)
					br, b := open(t, seed), openBank(t)
					b.limit = time.Second
					through, c := b.behindCutter(t, after)
					c.silent = true
					through.member(t, f, br.source(t, nil), nil, nil)
					const n = 3
					for i := range n {
						before := c.cuts.Load()
						c.at(text)
						ms := numbered(string(rune('a'+i)), 10, "")
						br.to(t, 0, ms[:5]...)
						br.to(t, 1, ms[5:]...)
						until(t, "a connection silent", func() bool { return c.cuts.Load() > before })
						br.settled(t)
					}
					if keys, double := tally(b.effects(t)); keys != 10*n || double > 0 {
						t.Errorf("%d of %d messages have an effect, %d are double", keys, 10*n, double)
					}
					if n := len(br.Copies(t, driver.DeadLetter)); n > 0 {
						t.Errorf("%d messages were dead-lettered", n)
					}
				})
			}
		}
	})
}
