//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// serveLedger is a service that writes a line into a file for each effect. If it
// honours the key, it writes a line for each key once, also after a crash. It takes
// some time before it answers, so that a crash finds effects without an answer.
func serveLedger(addr, file string, honour bool) error {
	done := map[string]bool{}
	if honour {
		for _, key := range ledgerLines(file) {
			done[key] = true
		}
	}
	ledger, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var l net.Listener
	for range 1000 { // the killed service may still hold the address
		if l, err = net.Listen("tcp", addr); err == nil {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		key, err := strconv.Unquote(r.Header.Get("Idempotency-Key"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		known := honour && done[key]
		if !known {
			done[key] = true
			_, err = ledger.WriteString(key + "\n")
		}
		mu.Unlock()
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		<-time.After(time.Duration(20+rand.IntN(80)) * time.Millisecond)
	}))
}

// ledgerLines are the keys of the effects. A line that was cut off is none.
func ledgerLines(file string) (keys []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return keys
		}
		keys = append(keys, strings.TrimSuffix(line, "\n"))
	}
}

// member is a process that is killed, frozen and started again.
type member struct {
	t    *testing.T
	role string
	args []string
	proc *proctest.Process
	log  *proctest.Log
}

func (m *member) start() {
	cmd := proctest.Self(m.t, roleVar+"="+m.role, argsVar+"="+strings.Join(m.args, "\n"))
	m.log = &proctest.Log{}
	cmd.Stderr = m.log
	m.proc = proctest.Run(m.t, cmd)
}

func (m *member) signal(s os.Signal) {
	if err := m.proc.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.t.Error(err)
	}
}

// Two members deliver to a service. All three are killed and frozen again and again.
// Nothing is lost. A service that honours the key has each effect once; the control,
// which does not, has some twice.
func TestCampaign_MembersAndServiceKilled_NothingLostNothingDouble(t *testing.T) {
	campaign(t, "NATS", openNATS)
}

// campaign delivers the messages of a broker under kills.
func campaign(t *testing.T, where string, open func(t *testing.T) *side) {
	t.Helper()
	if testing.Short() {
		t.Skip("kills processes for half a minute")
	}
	messages, kills := 400, 16
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		messages, kills = 5000, 300
	}
	for _, honour := range []string{"honour", "control"} {
		t.Run(honour, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			lost, double := 0, 0
			// No kill of the control may fall between an effect and its answer.
			for try := 0; try == 0 || honour == "control" && double == 0 && try < 5; try++ {
				lost, double = tally(killAll(t, open(t), random, messages, kills, honour), messages)
			}
			report(t, where, honour, messages, lost, double, kills)
			if lost > 0 || honour == "honour" && double > 0 || honour == "control" && double == 0 {
				t.Errorf("%d lost, %d double", lost, double)
			}
		})
	}
}

// tally counts the messages without an effect and those with several.
func tally(counts map[string]int, messages int) (lost, double int) {
	for n := range messages {
		switch c := counts[fmt.Sprint("k", n)]; {
		case c == 0:
			lost++
		case c > 1:
			double++
		}
	}
	return lost, double
}

// report logs a figure for the evidence.
func report(t *testing.T, where, service string, messages, lost, double, kills int) {
	t.Helper()
	claim := "a service that honours the key has one effect for each message of a broker, whichever process is killed or frozen"
	if service == "control" {
		claim = "a service that ignores the key has more than one effect for some messages"
	}
	text, err := json.Marshal(map[string]any{
		"control": service == "control", "claim": claim, "where": "semel deliver, " + where, "trials": messages, "failures": lost + double,
		"detail": fmt.Sprintf("%d kills and freezes of two members and the service; %d messages lost, %d double", kills, lost, double),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// killAll delivers messages, 30 % of them twice, under kills, and counts the effects.
func killAll(t *testing.T, b *side, random *rand.Rand, messages, kills int, honour string) map[string]int {
	dir := t.TempDir()
	file := filepath.Join(dir, "ledger")
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	args := append(b.args, "--to", "http://"+addr+"/events", "--store", "sqlite:"+filepath.Join(dir, "semel.db"), "--lease", "1s", "--timeout", "2s", "--max-attempts", "0",
		"--concurrency", "8")
	members := []*member{{t: t, role: "deliver", args: args}, {t: t, role: "deliver", args: args}, {t: t, role: "service", args: []string{addr, file, honour}}}
	for _, m := range members {
		m.start()
	}
	for kill := range kills {
		for n := messages * kill / kills; n < messages*(kill+1)/kills; n++ {
			for range 1 + random.IntN(10)/7 {
				b.publish(t, fmt.Sprint("k", n), fmt.Sprint("lane", n%20), `{}`)
			}
		}
		m := members[random.IntN(len(members))]
		<-time.After(time.Duration(20+random.IntN(150)) * time.Millisecond)
		if random.IntN(4) == 0 { // it freezes for longer than its lease
			m.signal(syscall.SIGSTOP)
			<-time.After(1500 * time.Millisecond)
			m.signal(syscall.SIGCONT)
			continue
		}
		m.proc.Kill()
		m.start()
	}
	distinct := func() map[string]int {
		counts := map[string]int{}
		for _, key := range ledgerLines(file) {
			counts[key]++
		}
		return counts
	}
	eventually(t, "each message has an effect", func() bool { return len(distinct()) == messages })
	for _, m := range members[:2] { // requests under way end
		eventually(t, "the member has started", func() bool { return strings.Contains(m.log.String(), "msg=delivering") })
		m.signal(syscall.SIGTERM)
		if err := m.proc.Wait(); err != nil {
			t.Errorf("a member did not stop cleanly: %v\n%s", err, m.log)
		}
	}
	return distinct()
}
