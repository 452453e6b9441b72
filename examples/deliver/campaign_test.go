package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/internal/proctest"
)

// program is a process that is killed, frozen and started again.
type program struct {
	t       *testing.T
	command func() *exec.Cmd
	proc    *proctest.Process
	log     proctest.Log // of all its lives
	began   int          // where the log of this life begins
}

func (p *program) start() {
	p.began = len(p.log.String())
	cmd := p.command()
	cmd.Stderr = &p.log
	p.proc = proctest.Run(p.t, cmd)
}

// restart kills the process, and starts it again after a pause.
func (p *program) restart(pause time.Duration) {
	p.proc.Kill()
	<-time.After(pause)
	p.start()
}

func (p *program) signal(s os.Signal) {
	if err := p.proc.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// doubts counts the requests that had no answer.
func (p *program) doubts() int {
	return strings.Count(p.log.String(), "nobody knows whether a message took effect")
}

// campaign is payments that are sent, delivered and booked while processes fail.
type campaign struct {
	t                          *testing.T
	broker                     *broker
	service                    *program
	members                    []*program // of semel deliver
	address                    string     // of the service
	sent, cents                int
	kills, freezes, unanswered int
}

// Two members of semel deliver send payments from a broker, NATS, to a service. The
// service, the members and the broker are killed with SIGKILL, the service while it has
// requests; members are frozen for longer than their lease. The service honours the key:
// each payment is booked once, and the refused one is in the dead letters.
func TestCampaign_ServiceDelivererBrokerKilled_EachPaymentBookedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for half a minute")
	}
	faults, batch := 8, 20
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		faults, batch = 120, 40
	}
	for name, script := range services {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCampaign(t, name, script)
			if err := c.broker.publish(t, payment{ID: "bad"}, struct{}{}); err != nil {
				t.Fatal(err)
			}
			for n := range faults {
				c.fault(n, batch)
			}
			c.finish(name)
		})
	}
}

func newCampaign(t *testing.T, name string, script func(*testing.T) string) *campaign {
	t.Helper()
	interpreter, err := exec.LookPath(name)
	proctest.Need(t, err, exec.ErrNotFound)
	deliver, err := deliverer()
	if err != nil {
		t.Fatal(err)
	}
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir, file := t.TempDir(), script(t)
	c := &campaign{t: t, broker: startBroker(t), address: fmt.Sprintf("http://127.0.0.1:%d/payments", port)}
	c.service = &program{t: t, command: func() *exec.Cmd {
		return exec.Command(interpreter, file, fmt.Sprint(port), filepath.Join(dir, "booked"))
	}}
	c.service.start()
	for range 2 {
		m := &program{t: t, command: func() *exec.Cmd {
			return exec.Command(deliver, "--from", c.broker.url+"/PAYMENTS/"+group, "--order", "header:"+accountHeader, "--to", c.address,
				"--store", "sqlite:"+filepath.Join(dir, "semel.db"), "--lease", "1s", "--timeout", "5s", "--max-attempts", "0", "--concurrency", "8")
		}}
		m.start()
		c.members = append(c.members, m)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range append(c.members, c.service) {
				t.Log(p.log.String())
			}
		}
	})
	return c
}

// fault sends payments, and lets a process fail while they are delivered.
func (c *campaign) fault(n, batch int) {
	member := c.members[rand.IntN(len(c.members))]
	booked := read(c.address).Payments
	sent := c.send(batch)
	pause := time.Duration(1+rand.IntN(60)) * time.Millisecond
	switch n % 4 {
	case 0:
		for try := 0; c.killService(booked) == 0 && try < 10; try++ { // it had no request
			<-sent
			booked = read(c.address).Payments
			sent = c.send(batch)
		}
	case 1:
		<-time.After(pause)
		c.kills++
		member.restart(0)
	case 2:
		<-time.After(pause)
		c.freezes++
		member.signal(syscall.SIGSTOP)
		<-time.After(1500 * time.Millisecond)
		member.signal(syscall.SIGCONT)
	case 3:
		for _, m := range c.members { // one that finds no broker at its start ends
			exampletest.WaitFor(c.t, "the member has started", func() bool { return strings.Contains(m.log.String()[m.began:], "msg=delivering") })
		}
		<-time.After(pause)
		c.kills++
		c.broker.restart(10 * pause)
		c.broker.await()
	}
	<-sent
}

// send sends a batch of payments, three in ten of them twice, until the broker has
// confirmed all.
func (c *campaign) send(batch int) (sent <-chan struct{}) {
	var list []payment
	for range batch {
		p := payment{fmt.Sprint("pay-", c.sent), fmt.Sprint("account-", c.sent%7), 1 + c.sent%100}
		c.sent++
		c.cents += p.Cents
		for range 1 + rand.IntN(10)/7 {
			list = append(list, p)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, p := range list {
			for c.broker.publish(c.t, p, p) != nil && c.t.Context().Err() == nil { // the broker is away
				<-time.After(20 * time.Millisecond)
			}
		}
	}()
	return done
}

// killService kills the service as soon as it has booked something of a batch, and returns
// how many requests had no answer.
func (c *campaign) killService(booked int) int {
	doubts := func() int { return c.members[0].doubts() + c.members[1].doubts() }
	before := doubts()
	for end := time.Now().Add(4 * time.Minute); read(c.address).Payments == booked; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal("nothing is booked for 4 minutes")
		}
	}
	c.kills++
	c.service.restart(50 * time.Millisecond)
	got := doubts() - before
	c.unanswered += got
	return got
}

// finish waits until all messages are handled, and compares the books.
func (c *campaign) finish(name string) {
	t := c.t
	exampletest.WaitFor(t, "all messages are handled", func() bool { return c.broker.handled(t) })
	got := read(c.address)
	text, err := json.Marshal(map[string]any{
		"claim": "a service in another language that keeps the Idempotency-Key with its effect books each payment once, whichever of service, semel deliver and broker is killed or frozen",
		"where": "semel deliver, NATS, " + name, "trials": c.sent, "failures": max(c.sent-got.Payments, got.Payments-c.sent),
		"detail": fmt.Sprintf("%d kills of the service, of members and of the broker, %d freezes; %d requests had no answer because the service was killed", c.kills, c.freezes, c.unanswered),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
	if want := (total{Payments: c.sent, Cents: c.cents}); got != want {
		t.Errorf("booked %+v, want %+v", got, want)
	}
	if n := c.broker.copies(t); n != 1 {
		t.Errorf("%d messages in the dead letters and the quarantine, want the refused one", n)
	}
	if c.unanswered == 0 {
		t.Error("the service was never killed while it had a request")
	}
	for _, m := range c.members {
		m.signal(syscall.SIGTERM)
		if err := m.proc.Wait(); err != nil {
			t.Errorf("a member did not stop cleanly: %v", err)
		}
	}
}
