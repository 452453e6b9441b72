//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// pgShop is an outbox in PostgreSQL, on a server of its own.
type pgShop struct {
	url  string
	pool *pgxpool.Pool
	box  *pgoutbox.Outbox
}

func newPGShop(t *testing.T) *pgShop {
	t.Helper()
	s := &pgShop{url: pgtest.Start(t).URL()}
	var err error
	if s.pool, err = pgxpool.New(context.Background(), s.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	st, err := pgstore.New(t.Context(), s.pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if s.box, err = pgoutbox.New(st, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.box.Close() })
	return s
}

func (s *pgShop) put(t *testing.T, messages ...outbox.Message) {
	t.Helper()
	if err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { return s.box.Put(t.Context(), tx, messages...) }); err != nil {
		t.Fatal(err)
	}
}

// Two publishers are killed and frozen while they send. Each message arrives, and the
// first copies of each order key arrive in the order of the commits.
func TestCampaign_PublishersKilled_NothingLostOrderKept(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for half a minute")
	}
	each, kills := 60, 12
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		each, kills = 1000, 200
	}
	for name, open := range map[string]func(*testing.T) *destination{"NATS": toNATS, "Kafka": toKafka} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			const keys = 20
			d := open(t)
			killPublishers(t, rand.New(rand.NewPCG(seed, 2)), d, keys, each, kills)
			d.check(t, keys, each)
			lost := keys*each - d.distinct()
			text, err := json.Marshal(map[string]any{
				"claim": "each message of an outbox is published, and those of an order key in order, whichever publisher is killed or frozen",
				"where": "semel outbox publish, PostgreSQL to " + name, "trials": keys * each, "failures": lost,
				"detail": fmt.Sprintf("%d kills and freezes of two publishers; %d messages lost, %d repeated", kills, lost, d.repeats),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("evidence: %s", text)
		})
	}
}

// killPublishers writes messages while publishers are killed, until all have arrived.
func killPublishers(t *testing.T, random *rand.Rand, d *destination, keys, each, kills int) {
	s := newPGShop(t)
	args := append([]string{"publish", "--store", s.url, "--lease", "1s", "--batch", "8", "--in-flight", "16"}, d.args...)
	members := []*member{{t: t, role: "deliver", args: args}, {t: t, role: "deliver", args: args}}
	for _, m := range members {
		m.start()
	}
	for kill := range kills {
		for n := each * kill / kills; n < each*(kill+1)/kills; n++ {
			messages := make([]outbox.Message, keys)
			for k := range messages {
				key := fmt.Sprint("key", k)
				messages[k] = outbox.Message{Topic: d.topic, OrderKey: key, ID: fmt.Sprintf("%s-%d", key, n), Body: []byte("{}")}
			}
			s.put(t, messages...)
		}
		m := members[random.IntN(len(members))]
		before := d.distinct()
		eventually(t, "messages arrive", func() bool { return d.distinct() > before || d.distinct() == keys*(each*(kill+1)/kills) })
		if random.IntN(3) == 0 { // it freezes for longer than its lease
			m.signal(syscall.SIGSTOP)
			<-time.After(1500 * time.Millisecond)
			m.signal(syscall.SIGCONT)
			continue
		}
		m.proc.Kill()
		m.start()
	}
	eventually(t, "each message has arrived", func() bool { return d.distinct() == keys*each })
	// A message that a killed publisher sent, and did not delete, is sent again.
	eventually(t, "no message is left in the outbox", func() bool {
		stats, err := s.box.Stats(t.Context())
		return err == nil && stats == outbox.Stats{}
	})
	for _, m := range members {
		eventually(t, "the publisher has started", func() bool { return strings.Contains(m.log.String(), "msg=publishing") })
		m.signal(syscall.SIGTERM)
		if err := m.proc.Wait(); err != nil {
			t.Errorf("a publisher did not stop cleanly: %v\n%s", err, m.log)
		}
	}
}
