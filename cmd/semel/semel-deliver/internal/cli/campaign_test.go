//go:build unix

package cli

import (
	"bufio"
	"bytes"
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

	semelcli "github.com/semel-go/semel/cmd/semel/internal/cli"
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
// Nothing is lost. A service that honours the key has each effect once. A service that
// ignores it has some twice; under park it has none twice, and a message in doubt is in
// the quarantine. The control, a plain consumer that POSTs, doubles.
func TestCampaign_MembersAndServiceKilled_NothingLostNothingDouble(t *testing.T) {
	campaign(t, "NATS", openNATS, append(trials, parked, plain))
}

// trial is a consumer before a service.
type trial struct {
	name    string
	claim   string
	program string
	member  string   // the role of the members
	args    []string // besides those of each member
	honour  bool     // the service honours the key
	doubles bool     // it is a control: some messages have more than one effect
}

var (
	trials = []trial{
		{"honour", "a service that honours the key has one effect for each message of a broker, whichever process is killed or frozen", "semel deliver", "deliver", nil, true, false},
		{"control", "a service that ignores the key has more than one effect for some messages", "semel deliver", "deliver", nil, false, true},
	}
	parked = trial{
		"park", "under park a service that ignores the key has at most one effect for each message; a message without one is in the quarantine, and the list of parked records has it",
		"semel deliver", "deliver", []string{"--on-doubt", "park"}, false, false,
	}
	plain = trial{"plain", "a plain consumer that POSTs to a service gives some messages more than one effect", "plain consumer", "plain", nil, false, true}
)

// campaign delivers the messages of a broker under kills.
func campaign(t *testing.T, where string, open func(t *testing.T) *side, trials []trial) {
	t.Helper()
	if testing.Short() {
		t.Skip("kills processes for half a minute")
	}
	messages, kills := 400, 16
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		messages, kills = 5000, 300
	}
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			var got tally
			// No kill of the control may fall between an effect and its answer.
			for try := 0; try == 0 || c.doubles && got.double == 0 && try < 5; try++ {
				got = c.killAll(t, open(t), random, messages, kills)
			}
			c.report(t, where, messages, kills, got)
			if got.lost > 0 || (got.double > 0) != c.doubles {
				t.Errorf("%+v", got)
			}
		})
	}
}

// tally counts messages.
type tally struct {
	lost        int // without an effect, and not in the quarantine
	double      int // with several effects
	quarantined int
}

// report logs a figure for the evidence.
func (c *trial) report(t *testing.T, where string, messages, kills int, got tally) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"control": c.doubles, "claim": c.claim, "where": c.program + ", " + where, "trials": messages, "failures": got.lost + got.double,
		"detail": fmt.Sprintf("%d kills and freezes of two members and the service; %d messages lost, %d double, %d in the quarantine", kills, got.lost, got.double, got.quarantined),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// killAll delivers messages, 30 % of them twice, under kills, and counts the effects.
func (c *trial) killAll(t *testing.T, b *side, random *rand.Rand, messages, kills int) tally {
	dir := t.TempDir()
	file := filepath.Join(dir, "ledger")
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	args := append(b.args[:2:2], "--to", "http://"+addr+"/events") // the plain consumer reads these alone
	args = append(args, b.args[2:]...)
	args = append(args, "--store", "sqlite:"+filepath.Join(dir, "semel.db"), "--lease", "1s", "--timeout", "2s", "--max-attempts", "0", "--concurrency", "8")
	args = append(args, c.args...)
	honour := "ignore"
	if c.honour {
		honour = "honour"
	}
	members := []*member{{t: t, role: c.member, args: args}, {t: t, role: c.member, args: args}, {t: t, role: "service", args: []string{addr, file, honour}}}
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
	effects := func() map[string]int {
		counts := map[string]int{}
		for _, key := range ledgerLines(file) {
			counts[key]++
		}
		return counts
	}
	quarantined := func() (keys []string) {
		if b.quarantined != nil {
			keys = b.quarantined(t)
		}
		return keys
	}
	eventually(t, "each message has an effect or is in the quarantine", func() bool {
		counts := effects()
		for _, key := range quarantined() {
			counts[key]++
		}
		return len(counts) == messages
	})
	for _, m := range members[:2] { // requests under way end
		eventually(t, "the member has started", func() bool { return strings.Contains(m.log.String(), "msg=delivering") })
		m.signal(syscall.SIGTERM)
		if err := m.proc.Wait(); err != nil {
			t.Errorf("a member did not stop cleanly: %v\n%s", err, m.log)
		}
	}
	return count(t, filepath.Join(dir, "semel.db"), effects(), quarantined(), messages)
}

// count counts messages. Each one of the quarantine must be in the list of parked records.
func count(t *testing.T, db string, effects map[string]int, quarantined []string, messages int) (got tally) {
	t.Helper()
	list, asked := "", map[string]bool{}
	if len(quarantined) > 0 {
		var text, log bytes.Buffer
		if code := semelcli.Run(t.Context(), []string{"inspect", "list", "--json", "--state", "parked", "--limit", "1000000", "--store", "sqlite:" + db},
			func(string) string { return "" }, strings.NewReader(""), &text, &log); code != 0 {
			t.Errorf("the list of parked records: exit code %d: %s", code, &log)
		}
		list = text.String()
	}
	for _, key := range quarantined {
		if asked[key] = true; !strings.Contains(list, `"`+key+`"`) {
			t.Errorf("%s is in the quarantine and not in the list of parked records", key)
		}
	}
	for n := range messages {
		key := fmt.Sprint("k", n)
		switch {
		case effects[key] > 1:
			got.double++
		case effects[key] == 0 && !asked[key]:
			got.lost++
		}
	}
	got.quarantined = len(asked)
	return got
}
