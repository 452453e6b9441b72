package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafka is an Apache Kafka broker in a process of its own.
type kafka struct {
	bin  string
	port int
	proc proctest.Server
}

// shared is the broker that the tests of this package share.
var shared proctest.Shared[*kafka]

// real starts the shared broker and returns its address. If Apache Kafka is not
// installed, it skips the test, which has run on kfake. SEMEL_TEST_KAFKA=1 makes
// the test fail instead, and 0 skips it in any case.
func real(t testing.TB) string { return realBroker(t).addr(0) }

func realBroker(t testing.TB) *kafka {
	t.Helper()
	if testing.Short() {
		t.Skip("on a real Kafka only in the long form")
	}
	k, err := shared.Get(startKafka)
	if demand := os.Getenv("SEMEL_TEST_KAFKA"); errors.Is(err, errNoKafka) && demand != "1" && demand != "only" {
		t.Skipf("NOT TESTED ON A REAL KAFKA, but on kfake: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// everywhere runs a test on kfake and on a real Kafka.
func everywhere(t *testing.T, test func(t *testing.T, seed string)) {
	t.Parallel()
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		_, seed := fake(t)
		test(t, seed)
	})
	t.Run("Apache Kafka", func(t *testing.T) {
		t.Parallel()
		test(t, real(t))
	})
}

// script is the path of scripts/kafka/kafka. Tests run in the directory of their package.
func script() (string, error) {
	return filepath.Abs(filepath.Join("..", "..", "..", "scripts", "kafka", "kafka"))
}

var errNoKafka = errors.New("no Apache Kafka")

// The script's exit status if Java or the jars are missing, and the shell's if
// the script's interpreter is missing.
const (
	missing = 3
	noBash  = 127
)

// startKafka starts a broker. If its jars are missing, it returns errNoKafka.
func startKafka() (*kafka, error) {
	if os.Getenv("SEMEL_TEST_KAFKA") == "0" {
		return nil, fmt.Errorf("%w: SEMEL_TEST_KAFKA=0", errNoKafka)
	}
	bin, err := script()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(bin, "have").CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && (e.ExitCode() == missing || e.ExitCode() == noBash) {
		return nil, fmt.Errorf("%w: %s", errNoKafka, bytes.TrimSpace(out))
	}
	if err != nil {
		return nil, fmt.Errorf("%s have: %w\n%s", bin, err, out)
	}
	dir, err := os.MkdirTemp("", "kafkatest")
	if err != nil {
		return nil, err
	}
	k := &kafka{bin: bin}
	k.proc = proctest.Server{Name: "kafkatest", Dir: dir, Limit: patience, Command: k.command, Ready: k.answers}
	if err := k.proc.Start(); err != nil {
		return nil, errors.Join(err, k.Remove())
	}
	return k, nil
}

func (k *kafka) command(first bool) (*exec.Cmd, error) {
	if first {
		var err error
		if k.port, err = proctest.FreePort(1, 2); err != nil {
			return nil, err
		}
	}
	return exec.Command(k.bin, "run", k.proc.Dir, fmt.Sprint(k.port)), nil
}

// answers is nil if the broker has elected itself and takes requests.
func (k *kafka) answers(*proctest.Process) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.addr(0)))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return cl.Ping(ctx)
}

// kill crashes the broker. k.proc.Start starts it again.
func (k *kafka) kill() { k.proc.End(syscall.SIGKILL) }

// addr is the broker's address: listener 0 has no credentials, 2 has SASL.
func (k *kafka) addr(listener int) string {
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(k.port+listener))
}

// Remove kills the broker and deletes its data.
func (k *kafka) Remove() error { return k.proc.Remove(syscall.SIGKILL) }

func TestMain(m *testing.M) {
	if child() {
		return
	}
	os.Exit(proctest.Main(proctest.TestFunc(func() int { return pgtest.Main(m) }), &shared))
}
