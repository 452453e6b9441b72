//go:build unix

package lambda

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	_ "modernc.org/sqlite" // the judge reads the bookings without Semel

	"github.com/semel-go/semel/test/internal/figure"
)

// deaths is how many kills and time-outs a campaign has, at least.
func deaths() int64 {
	if figure.Long() {
		return 120
	}
	return 8
}

// box runs the invocations of one process, one at a time, and starts another process
// after one that has died. If killAfter is not 0, the process is killed then.
type box interface {
	invoke(id string, event any, timeout, killAfter time.Duration) ([]byte, error)
}

// payThroughDeaths has processes killed, and stopped at their time-outs, in the middle
// of invocations. Each key has one outcome, and all callers get it.
func payThroughDeaths(t *testing.T, where, folder string, boxes ...box) {
	var mu sync.Mutex
	outcomes, doubles := map[string]string{}, int64(0)
	check := func(id string, body []byte) {
		mu.Lock()
		defer mu.Unlock()
		if outcomes[id] == "" {
			outcomes[id] = string(body)
		}
		if outcomes[id] != string(body) {
			doubles++
			t.Errorf("key %s has two outcomes: %s and %s", id, outcomes[id], body)
		}
	}
	var kills, timeouts, calls atomic.Int64
	var group sync.WaitGroup
	for _, s := range boxes {
		group.Go(func() {
			for kills.Load()+timeouts.Load() < deaths() || kills.Load() == 0 || timeouts.Load() == 0 {
				n := calls.Add(1)
				p := payment{ID: fmt.Sprint("k", n/6), Cents: 7, Millis: rand.IntN(20)}
				timeout, killAfter := 5*time.Second, time.Duration(0)
				switch rand.IntN(4) {
				case 0:
					killAfter = time.Duration(1+rand.IntN(40)) * time.Millisecond
				case 1:
					p.Millis, timeout = 60_000, time.Duration(50+rand.IntN(100))*time.Millisecond
					p.Mode = []string{"deaf", ""}[rand.IntN(2)]
				}
				body, err := s.invoke(fmt.Sprint(n), p, timeout, killAfter)
				switch {
				case err == nil:
					check(p.ID, body)
				case errors.Is(err, errKilled):
					kills.Add(1)
				case errors.Is(err, errTimeout):
					timeouts.Add(1)
				}
			}
		})
	}
	group.Wait()
	for n := range calls.Load()/6 + 1 {
		id := fmt.Sprint("k", n)
		for try := 0; ; try++ {
			body, err := boxes[0].invoke(fmt.Sprint("end", n, try), payment{ID: id, Cents: 7}, 30*time.Second, 0)
			if err == nil {
				check(id, body)
				break
			}
			if try == 10 {
				t.Fatalf("key %s never ends: %v", id, err)
			}
		}
	}
	ran := runs(t, folder)
	for id, outcome := range outcomes {
		if !slices.Contains(ran, strings.Trim(outcome, `"`)) {
			t.Errorf("key %s: no run made the outcome %s", id, outcome)
		}
	}
	figure.Report(t, figure.Figure{
		Claim: "a key whose invocation was killed or timed out has one outcome for all callers", Where: where, Trials: kills.Load() + timeouts.Load(), Failures: doubles,
		Detail: fmt.Sprintf("%d kills, %d time-outs; %d invocations, %d runs of %d keys", kills.Load(), timeouts.Load(), calls.Load(), len(ran), len(outcomes)),
	})
}

// bookThroughDeaths has batches of a FIFO queue, with duplicates inside a batch and in
// another process at the same time: each message is booked once, and each group in its
// order.
func bookThroughDeaths(t *testing.T, where, folder string, boxes ...box) {
	const groups, perGroup = 2, 12
	var kills, repeats int64
	left := map[string][]string{} // the IDs of each group, in order
	for g := range groups {
		for i := range perGroup {
			lane := fmt.Sprint("g", g)
			left[lane] = append(left[lane], fmt.Sprintf("%s-%06d", lane, i))
		}
	}
	booked := map[string]int{}
	for round := 0; ; round++ {
		var e events.SQSEvent
		for _, lane := range []string{"g0", "g1"} {
			for _, id := range left[lane][:min(4, len(left[lane]))] {
				body, err := json.Marshal(payment{ID: id, Mode: "fail", Millis: rand.IntN(3)})
				if err != nil {
					t.Fatal(err)
				}
				for copyOf := range 2 { // its producer sent it twice
					e.Records = append(e.Records, events.SQSMessage{
						MessageId: fmt.Sprint(id, "/", copyOf), Body: string(body), EventSourceARN: "arn:aws:sqs:eu-west-1:1:q.fifo", Attributes: map[string]string{"MessageGroupId": lane},
					})
				}
			}
		}
		if len(e.Records) == 0 {
			if kills >= deaths() {
				break
			}
			for lane := range left { // the next messages
				for i := range perGroup {
					left[lane] = append(left[lane], fmt.Sprintf("%s-%06d", lane, (round+1)*perGroup+i))
				}
			}
			continue
		}
		kill := time.Duration(0)
		if rand.IntN(3) > 0 {
			kill = time.Duration(1+rand.IntN(60)) * time.Millisecond
		}
		var other sync.WaitGroup
		other.Go(func() { _, _ = boxes[1].invoke(fmt.Sprint("b", round), e, 5*time.Second, 0) }) // its bookings count, not its answer
		body, err := boxes[0].invoke(fmt.Sprint("a", round), e, 5*time.Second, kill)
		other.Wait()
		if errors.Is(err, errKilled) || errors.Is(err, errTimeout) {
			kills++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var r events.SQSEventResponse
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatal(err)
		}
		failed := map[string]bool{}
		for _, f := range r.BatchItemFailures {
			id, _, _ := strings.Cut(f.ItemIdentifier, "/")
			failed[id] = true
			repeats++
		}
		for _, m := range e.Records {
			id, _, _ := strings.Cut(m.MessageId, "/")
			if lane := m.Attributes["MessageGroupId"]; !failed[id] && slices.Contains(left[lane], id) {
				booked[id]++
				left[lane] = slices.DeleteFunc(left[lane], func(l string) bool { return l == id })
			}
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(folder, "semel.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT lane, id FROM booking ORDER BY number")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	last, found, wrong := map[string]string{}, 0, int64(0)
	for rows.Next() {
		var lane, id string
		if err := rows.Scan(&lane, &id); err != nil {
			t.Fatal(err)
		}
		if found++; id <= last[lane] {
			wrong++
			t.Errorf("%s was booked after %s", id, last[lane])
		}
		last[lane] = id
	}
	if err := rows.Err(); err != nil || found != len(booked) {
		t.Errorf("%d bookings of %d messages that were reported as done (%v)", found, len(booked), err)
	}
	figure.Report(t, figure.Figure{
		Claim: "a message of a FIFO queue is booked once, in the order of its group, though its batch was killed, delivered twice at a time, and has duplicates",
		Where: where, Trials: int64(found), Failures: wrong + int64(max(found-len(booked), len(booked)-found)), Detail: fmt.Sprintf("%d kills, %d reported failures", kills, repeats),
	})
}
