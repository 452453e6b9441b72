package semelamqp_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/store"
)

// figure is what the evidence of this repository collects from a test's log.
type figure struct {
	Claim    string `json:"claim"`
	Where    string `json:"where"`
	Trials   int    `json:"trials"`
	Failures int    `json:"failures"`
	Control  bool   `json:"control"`
	Detail   string `json:"detail"`
}

func report(t *testing.T, f figure) {
	t.Helper()
	f.Where = "RabbitMQ"
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// size returns the number of messages and kills of a load. SEMEL_EVIDENCE=1 selects
// the long form, and -short the small one.
func size() (messages, kills int) {
	switch {
	case os.Getenv("SEMEL_EVIDENCE") == "1":
		return 100_000, 100
	case testing.Short():
		return 500, 2
	}
	return 2000, 6
}

// starts runs functions on one thread that lives as long as this process: a
// child that is to die with its parent dies with the parent's thread.
var starts = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// member starts a consumer, as a process of its own. Kill ends it as a power
// failure would.
func member(t *testing.T, s spec) (kill func()) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	starts() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // its error says that it was killed
	})
	t.Cleanup(kill)
	return kill
}

// load publishes messages, 30 % of them twice, and kills members meanwhile.
func load(t *testing.T, s spec, messages, kills int) (d *desk, took time.Duration) {
	server := amqptest.Shared(t)
	b := &broker{server: server, name: fmt.Sprintf("load%d", queues.Add(1)), copies: map[driver.Action][]consume.Message{}}
	d = openDesk(t)
	s.URL, s.Queue, s.Desk = server.URL(), b.name, d.addr
	src, err := semelamqp.New(s.URL, s.Queue, s.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	b.ch = channel(t, s.URL)
	if err := b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var sent []*amqp.DeferredConfirmation
	send := func(i int) {
		m := consume.Message{Body: fmt.Append(nil, i), Headers: []store.Header{{Name: consume.KeyHeader, Value: fmt.Sprint(i)}}}
		if i%3 == 0 {
			m.OrderKey = fmt.Sprint("lane", i%7)
		}
		c, err := b.ch.PublishWithDeferredConfirm("", b.name, true, false, publishing(&m))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, c)
	}
	for i := range messages {
		send(i)
		if i%10 < 3 {
			send(rand.N(i + 1))
		}
	}
	for _, c := range sent {
		if !c.Wait() {
			t.Fatal("the broker refused a message")
		}
	}
	began := time.Now()
	members := []func(){member(t, s), member(t, s)}
	for k := range kills {
		target := max(d.done()+1, messages*(k+1)/(kills+1))
		until(t, "some progress", func() bool { return d.done() >= min(target, messages) })
		members[k%2]()
		members[k%2] = member(t, s)
	}
	settled(t, b)
	took = time.Since(began)
	if n := len(b.Copies(t, driver.DeadLetter)) + len(b.Copies(t, driver.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	return d, took
}

func TestCampaign_ProcessesKilled_EachKeyHasOneOutcome(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			messages, kills := size()
			d, took := load(t, spec{Kind: kind}, messages, kills)
			lost, again := d.counts(messages)
			if lost > 0 || len(d.derived) != messages {
				t.Errorf("of %d messages %d were lost, and %d derived keys were passed on", messages, lost, len(d.derived))
			}
			report(t, figure{
				Claim:  "a message published up to twice, to processes that are killed, is handled, and passes on one derived key (" + string(kind) + " queue)",
				Trials: messages, Failures: lost + max(len(d.derived)-messages, messages-len(d.derived)),
				Detail: fmt.Sprintf("%d kills, 30 %% duplicates, %d handlers ran again after a death, %.0f messages/s", kills, again, float64(messages)*1.3/took.Seconds()),
			})
		})
	}
}

// With a single active consumer order per key holds from one process to the
// next.
func TestCampaign_NextProcess_OrderKept(t *testing.T) {
	messages, kills := size()
	messages, kills = messages/3, (kills+1)/2
	d, _ := load(t, spec{Kind: semelamqp.Quorum, Single: true}, messages, kills)
	lost, _ := d.counts(messages)
	if lost > 0 || d.wrong > 0 {
		t.Errorf("of %d messages %d were lost, and %d overtook one of their order key", messages, lost, d.wrong)
	}
	report(t, figure{
		Claim: "with a single active consumer messages with one order key take effect in their order, over killed processes", Trials: messages, Failures: lost + d.wrong,
		Detail: fmt.Sprintf("%d kills, 30 %% duplicates, 7 order keys", kills),
	})
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	messages, kills := size()
	messages, kills = messages/5, kills/4
	d, _ := load(t, spec{Kind: semelamqp.Classic, Naive: true}, messages, kills)
	lost, again := d.counts(messages)
	if again == 0 || lost > 0 {
		t.Errorf("%d duplicates took effect, %d messages were lost: the load proves nothing", again, lost)
	}
	report(t, figure{Claim: "without deduplication a duplicate takes effect again", Trials: messages, Failures: again, Control: true})
}
