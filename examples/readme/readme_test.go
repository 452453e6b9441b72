// Package readme runs the programs of the README.
package readme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// build builds a program of the README and returns its path. Each pair of replace
// is an old and a new text of its source.
func build(t *testing.T, name string, replace ...string) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(name, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied, overlay, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, name)
	doc, err := json.Marshal(map[string]map[string]string{"Replace": {source: copied}})
	replaced := strings.NewReplacer(replace...).Replace(string(text))
	if err := errors.Join(err, os.WriteFile(copied, []byte(replaced), 0o600), os.WriteFile(overlay, doc, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, out)
	}
	return program
}

// run runs a program in an empty folder and returns what it prints.
func run(t *testing.T, program string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Env = t.TempDir(), append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

func TestFunction_ThreeCalls_ChargeOnce(t *testing.T) {
	out := run(t, build(t, "function"))
	if strings.Count(out, "charging 4200 cents") != 1 || strings.Count(out, "receipt of order-17 <nil>\n") != 3 {
		t.Errorf("it prints\n%s", out)
	}
}

func TestSaga_SecondOrderIsRefused_IsUndoneInReverse(t *testing.T) {
	out := run(t, build(t, "saga"))
	at := -1
	for _, text := range []string{"hold book", "charge 1200 cents", "book is on its way, payment of ann <nil>\n", "hold ghost", "charge 100 cents", "refund the payment of bob", "release 1 ghost", " there are no ghosts\n"} {
		next := strings.Index(out, text)
		if next <= at || strings.Count(out, text) != 1 {
			t.Errorf("%q comes at %d, and the text before it at %d:\n%s", text, next, at, out)
		}
		at = next
	}
}

func TestTransaction_ThreeCalls_GetOneID(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(run(t, build(t, "transaction"))), "\n")
	if len(lines) != 3 || lines[0] != lines[1] || lines[1] != lines[2] || !strings.HasSuffix(lines[0], " <nil>") {
		t.Errorf("it prints %q", lines)
	}
}

func TestOutbox_OrdersPlaced_CustomerGetsEachInOrder(t *testing.T) {
	out := run(t, build(t, "outbox"))
	first, second := `the customer gets {"placed": "order-17"}`, `the customer gets {"placed": "order-18"}`
	if i, j := strings.Index(out, first), strings.Index(out, second); i < 0 || j < i || strings.Count(out, "the customer gets") != 2 {
		t.Errorf("it prints\n%s", out)
	}
}

func TestPostgres_ThreeCalls_DepositOnce(t *testing.T) {
	url := pgtest.Start(t, pgtest.Fast...).URL()
	if out := run(t, build(t, "postgres"), "DATABASE_URL="+url); out != strings.Repeat("4200 <nil>\n", 3) {
		t.Errorf("it prints\n%s", out)
	}
}

func TestServer_RetryOfTheClient_GetsTheFirstAnswer(t *testing.T) {
	port, err := proctest.FreePort() // which no connection takes while the program is built
	if err != nil {
		t.Fatal(err)
	}
	free := strconv.Itoa(port)
	cmd := exec.CommandContext(t.Context(), build(t, "server", ":8080", ":"+free))
	var printed bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	defer stop()
	post := func() (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+free+"/payments", strings.NewReader(`{"cents": 4200}`))
		if err != nil {
			return "", err
		}
		r.SetBasicAuth("ann", "secret")
		r.Header.Set("Idempotency-Key", "order-17")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(body), res.Header.Get("Idempotent-Replayed")), err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, err := post()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for err != nil && ctx.Err() == nil { // until the server listens
		<-tick.C
		first, err = post()
	}
	second, err2 := post()
	if first != "201 payment 4711\n" || second != "201 payment 4711\ntrue" || err != nil || err2 != nil {
		t.Errorf("the answers are %q, %v and %q, %v", first, err, second, err2)
	}
	if out := run(t, build(t, "client", ":8080", ":"+free)); out != "201 Created replayed: false\n" {
		t.Errorf("the client prints %q", out)
	}
	stop()
	if n := len(regexp.MustCompile("charging ann").FindAllString(printed.String(), -1)); n != 2 {
		t.Errorf("%d charges for two payments:\n%s", n, printed.String())
	}
}

func TestMessages_MessageTwice_ChargesOnce(t *testing.T) {
	broker, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	broker.Start()
	defer broker.Shutdown()
	if !broker.ReadyForConnections(time.Minute) {
		t.Fatal("the broker is not ready")
	}
	conn, err := nats.Connect(broker.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []jetstream.StreamConfig{
		{Name: "ORDERS", Subjects: []string{"orders"}, MaxAge: 24 * time.Hour}, {Name: "LETTERS", Subjects: []string{"dead-letters.>", "quarantine.>"}},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	orders, err := js.CreateConsumer(t.Context(), "ORDERS", jetstream.ConsumerConfig{Durable: "billing", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := &nats.Msg{Subject: "orders", Header: nats.Header{"idempotency-key": {"order-17"}}, Data: []byte(`{"Cents": 4200}`)}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), build(t, "messages", "nats.DefaultURL", strconv.Quote(broker.ClientURL())))
	var printed bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := orders.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.NumPending == 0 && info.NumAckPending == 0 && info.AckFloor.Stream == 2 {
			break
		}
		<-tick.C
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if strings.Count(printed.String(), "charging 4200 cents") != 1 {
		t.Errorf("it prints\n%s", printed.String())
	}
}
