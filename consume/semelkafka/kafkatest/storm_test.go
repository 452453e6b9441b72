package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/twmb/franz-go/pkg/kfake"
)

// storm is members that share a topic while whatever can fail does, at random and
// at the same time: handlers, their statements and their COMMITs, connections to
// PostgreSQL and to Kafka, the requests of the group, dead letters. Members come,
// go and are cut off, and others run the same keys. Each failure has tests of its
// own; here they meet. A seed plans the same in each run, but for its timing.
type storm struct {
	t     *testing.T
	seed  uint64
	size  int // there are so many times more messages, and as much fewer that fail
	form  form
	c     *fakeKafka
	br    *broker
	bank  *bank  // to look with
	who   string // the members' connections to PostgreSQL
	began time.Time

	members []*stormy
	cutOff  []*stormy
	joined  int
	others  sync.WaitGroup
	faults  []*kfake.FaultHandle

	mu    sync.Mutex
	tried map[string]int // how often a key has met its fate
	steps map[step]bool
	notes []string
}

// stormKeys are the record keys of a storm.
const stormKeys = 12

// A storm for each form. SEMEL_TEST_STORM=7,20 runs 20 seeds from 7 on.
func TestStorm_EachForm_KeepsItsGuarantee(t *testing.T) {
	t.Parallel()
	first, n := 1, 1
	switch is := os.Getenv("SEMEL_TEST_STORM"); {
	case is != "":
		if _, err := fmt.Sscanf(is, "%d,%d", &first, &n); err != nil {
			t.Fatalf("SEMEL_TEST_STORM: is %q; want the first seed and how many, as 7,20: %v", is, err)
		}
	case evidence():
		n = 12
	case testing.Short():
		first = 2 // a storm with an even seed is small
	}
	for _, f := range []form{keyed, offsets, leased} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			wrong, messages := 0, 0
			for seed := first; seed < first+n; seed++ {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					s := newStorm(t, f, uint64(seed), 1+seed%2*7) //nolint:gosec // it is a seed
					keys, records := s.blow()
					s.settle()
					faults := s.judge(keys)
					for _, is := range faults {
						t.Error(is)
					}
					if wrong, messages = wrong+len(faults), messages+records; len(faults) > 0 {
						t.Logf("what happened, at last:\n%s", strings.Join(s.notes[max(0, len(s.notes)-300):], "\n"))
					}
				})
			}
			report(t, figure{Claim: stormClaims[f], Where: "kfake, PostgreSQL", Trials: messages, Failures: wrong,
				Detail: fmt.Sprintf("%d seeds: handlers, statements, COMMITs, connections, group requests and letters fail at random", n)})
		})
	}
}

var stormClaims = map[form]string{
	keyed:   "in a storm of failures a message is in PostgreSQL exactly once, by its key, in the order of its record key, or in the dead letters if it has to be",
	offsets: "in a storm of failures a record is in PostgreSQL exactly once, by its offset, in the order of its partition, or in the dead letters if it has to be",
	leased:  "in a storm of failures a message has its effect, in the order of its record key, or is in the dead letters if it has to be",
}

func newStorm(t *testing.T, f form, seed uint64, size int) *storm {
	c, at := longFake(t)
	s := &storm{t: t, seed: seed, size: size, form: f, c: c, br: open(t, at), tried: map[string]int{}, steps: map[step]bool{}, began: time.Now()}
	s.bank = openBankAt(t, pgtest.URL(t), fmt.Sprintf("k%d_%d", os.Getpid(), banks.Add(1)))
	s.who = "storm_" + s.bank.schema
	child, trap, springs := s.bank.in("child"), s.bank.in("trap"), s.bank.in("springs")
	for _, sql := range []string{
		"CREATE TABLE " + child + " (id serial PRIMARY KEY, parent int REFERENCES " + child + " DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TABLE " + trap + " (n int)",
		"CREATE FUNCTION " + springs + "() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'",
		"CREATE CONSTRAINT TRIGGER sprung AFTER INSERT ON " + trap + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + springs + "()",
	} {
		if _, err := s.bank.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// hash is a number that a seed has for a key.
func (s *storm) hash(key, of string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.seed, "/", key, "/", of)
	x := h.Sum64() // its last bits depend little on the first bytes
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}

func (s *storm) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf("%7.3f ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
}

// blow publishes messages while everything fails. Of three in ten an earlier one
// comes again.
func (s *storm) blow() (keys []string, records int) {
	r := rand.New(rand.NewPCG(s.seed, 7)) //nolint:gosec // it need not be secret
	s.join()
	s.join()
	for len(keys) < 400*s.size {
		var ms [partitions][]consume.Message
		for range 1 + r.IntN(60*s.size*s.size) {
			if len(keys) > 0 && r.IntN(10) < 3 {
				old := keys[r.IntN(len(keys))]
				at := orderKeyOf(old) % partitions
				ms[at] = append(ms[at], msg(old, old[:2]))
				records++
			}
			orderKey := r.IntN(stormKeys)
			key := fmt.Sprintf("%02d/%06d", orderKey, len(keys))
			ms[orderKey%partitions] = append(ms[orderKey%partitions], msg(key, key[:2]))
			keys = append(keys, key)
			records++
		}
		for p := range ms {
			if len(ms[p]) > 0 {
				s.br.to(s.t, int32(p), ms[p]...)
			}
		}
		s.event(r, keys)
		<-time.After(time.Duration(r.IntN(80)) * time.Millisecond)
	}
	return keys, records
}

func orderKeyOf(key string) int { return int(key[0]-'0')*10 + int(key[1]-'0') }

// settle is the calm after it: all that is left must be done.
func (s *storm) settle() {
	for _, f := range s.faults {
		f.Remove()
	}
	s.note("the storm is over")
	for _, m := range s.cutOff {
		s.others.Go(func() { s.leave(m) })
	}
	s.others.Wait()
	for done, end := -1, time.Now().Add(patience); s.br.Unsettled(s.t) > 0 && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if n := s.progress(); n > done { // a busy machine goes on slowly
			done, end = n, time.Now().Add(patience)
		}
	}
	if n := s.br.Unsettled(s.t); n > 0 {
		s.t.Errorf("%d messages are not settled, and for %v none was decided or tried once more: %s", n, patience, s.br.State(s.t))
	}
	for _, m := range s.members {
		s.leave(m)
	}
}

// judge says what is not as it must be.
func (s *storm) judge(keys []string) (wrong []string) {
	letters := map[string]bool{}
	for _, l := range s.br.Copies(s.t, driver.DeadLetter) {
		key := string(l.Body)
		if letters[key] = true; !isDead(s.fate(key)) {
			why, _ := l.Header(driver.LetterReason)
			text, _ := l.Header(driver.LetterError)
			wrong = append(wrong, fmt.Sprintf("%s, which %s, is a dead letter: %s: %s", key, s.fate(key), why, text))
		}
	}
	if n := len(s.br.Copies(s.t, driver.Quarantine)); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d messages are in the quarantine", n))
	}
	effects := s.bank.effects(s.t)
	wrong = append(wrong, judgeEffects(s.form, keys, effects, letters, s.fate)...)
	if s.form != offsets {
		return wrong
	}
	var double, late int
	err := s.bank.pool.QueryRow(s.t.Context(), `SELECT count(*) - count(DISTINCT (part, at)), count(*) FILTER (WHERE before > at)
		FROM (SELECT part, at, lag(at) OVER (PARTITION BY part ORDER BY n) AS before FROM `+s.bank.table()+`) x`).Scan(&double, &late)
	if err != nil {
		s.t.Fatal(err)
	}
	if double > 0 || late > 0 {
		wrong = append(wrong, fmt.Sprintf("of the records %d have their effect twice, %d behind a later one", double, late))
	}
	return wrong
}

// judgeEffects judges the effects of keys, in their order.
func judgeEffects(f form, keys, effects []string, letters map[string]bool, fate func(key string) string) (wrong []string) {
	has, last := map[string]int{}, map[int]string{}
	for _, k := range effects {
		if has[k]++; has[k] == 1 && f != offsets { // there, it is each record's
			if k < last[orderKeyOf(k)] {
				wrong = append(wrong, fmt.Sprintf("%s has its effect behind %s", k, last[orderKeyOf(k)]))
			}
			last[orderKeyOf(k)] = k
		}
	}
	for _, k := range keys {
		switch is := isDead(fate(k)); {
		case is && has[k] > 0, !is && has[k] == 0, has[k] > 1 && f == keyed:
			wrong = append(wrong, fmt.Sprintf("%s, which %s, has %d effects", k, fate(k), has[k]))
		case is && !letters[k]:
			wrong = append(wrong, fmt.Sprintf("%s, which %s, is no dead letter", k, fate(k)))
		}
	}
	return wrong
}

// The judge of a storm is not blind.
func TestStorm_SeededBugs_AreFound(t *testing.T) {
	t.Parallel()
	fate := func(key string) string {
		if key == "01/000002" {
			return "is final"
		}
		return ""
	}
	keys := []string{"01/000000", "02/000001", "01/000002", "01/000003"}
	good, letters := []string{"02/000001", "01/000000", "01/000003"}, map[string]bool{"01/000002": true}
	for name, c := range map[string]struct {
		effects []string
		letters map[string]bool
		wrong   int
	}{
		"all is well":        {good, letters, 0},
		"one is lost":        {good[:2], letters, 1},
		"one is double":      {append(slices.Clone(good), good[0]), letters, 1},
		"one was overtaken":  {[]string{"02/000001", "01/000003", "01/000000"}, letters, 1},
		"a dead one has one": {append(slices.Clone(good), "01/000002"), letters, 2}, // and it comes late
		"a letter is lost":   {good, nil, 1},
	} {
		if wrong := judgeEffects(keyed, keys, c.effects, c.letters, fate); len(wrong) != c.wrong {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

// elsewhere runs keys as another process would, which at last does nothing.
func (s *storm) elsewhere(a semel.Runner, keys []string, d time.Duration) {
	call := consume.Keyed("bank", consume.FromHeader(consume.KeyHeader))
	for _, k := range keys {
		m := msg(k, k[:2])
		m.Origin.Topic, m.RecordKey = s.br.name, []byte(m.OrderKey) // they are parts of the payload
		c, err := call(&m)
		if err != nil {
			s.t.Error(err)
			return
		}
		_, err = a.Run(context.Background(), c, func(context.Context, *semel.Execution) (store.Outcome, error) {
			<-time.After(d)
			return store.Outcome{}, semel.NoEffect(errors.New("nothing"))
		})
		if errors.Is(err, semel.ErrMismatch) {
			s.t.Errorf("the storm runs %s elsewhere with another payload than its message's", k)
		}
	}
}
