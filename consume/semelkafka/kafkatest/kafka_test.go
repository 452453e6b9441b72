package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafka is a real broker, in a process of its own that ends with this one.
type kafka struct {
	bin  string
	dir  string
	port int
	cmd  *exec.Cmd
	log  bytes.Buffer
	gone chan struct{}
}

// shared is the real broker of all tests; nil: there is none, and why.
var shared struct {
	once   sync.Once
	broker *kafka
	err    error
}

// real is the address of the real broker. Without one it skips the test with a
// message; other tests, or the same one, run on kfake. SEMEL_TEST_KAFKA=1:
// there must be a real broker, =0: there is none.
func real(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("on a real Kafka only in the long form")
	}
	shared.once.Do(func() { shared.broker, shared.err = startKafka() })
	if errors.Is(shared.err, errNoKafka) && os.Getenv("SEMEL_TEST_KAFKA") != "1" {
		t.Skipf("NOT TESTED ON A REAL KAFKA, but on kfake: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.broker.addr(0)
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

// script is where scripts/kafka/kafka is.
func script() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("the sources are not there")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "scripts", "kafka", "kafka"), nil
}

var errNoKafka = errors.New("no Apache Kafka")

// The script's exit status where Java or the jars are missing, and a shell's
// where the script's own interpreter is.
const (
	missing = 3
	noBash  = 127
)

// startKafka starts a broker of its own, if its jars are there.
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
	port, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kafkatest")
	if err != nil {
		return nil, err
	}
	k := &kafka{bin: bin, dir: dir, port: port}
	if err := k.start(); err != nil {
		k.end()
		return nil, err
	}
	return k, nil
}

func (k *kafka) start() error {
	k.cmd = exec.Command(k.bin, "run", k.dir, fmt.Sprint(k.port))
	k.cmd.Stdout, k.cmd.Stderr = &k.log, &k.log
	k.cmd.SysProcAttr = diesWithParent()
	k.gone = make(chan struct{})
	started := make(chan error)
	go func() {
		defer close(k.gone)
		runtime.LockOSThread() // the process dies with this thread, which ends with the process
		started <- k.cmd.Start()
		_ = k.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return err
	}
	return k.answers()
}

// answers waits until the broker has elected itself and takes requests.
func (k *kafka) answers() error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.addr(0)))
	if err != nil {
		return err
	}
	defer cl.Close()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		select {
		case <-k.gone:
			return fmt.Errorf("the broker ended:\n%s", k.log.Bytes())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err = cl.Ping(ctx)
		cancel()
		if err == nil {
			return nil
		}
	}
	k.stop()
	return fmt.Errorf("the broker does not answer: %w\n%s", err, k.log.Bytes())
}

// stop kills the broker.
func (k *kafka) stop() {
	_ = k.cmd.Process.Kill()
	<-k.gone
}

// addr is where the broker answers: 0 in the clear, 2 with SASL.
func (k *kafka) addr(n int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(k.port+n)) }

// end kills the broker, and removes what it has kept.
func (k *kafka) end() {
	if k.cmd.Process != nil { // it was started
		k.stop()
	}
	_ = os.RemoveAll(k.dir)
}

// freePorts finds adjacent ports that nobody listens on, below those that the
// system hands out by itself (32768 and up on Linux): while a broker is down,
// nobody else is given its ports. It returns the first.
func freePorts(n int) (int, error) {
	for range 100 {
		port := 10000 + rand.IntN(22000)
		var ls []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port+i)))
			if err != nil {
				break
			}
			ls = append(ls, l)
		}
		for _, l := range ls {
			_ = l.Close()
		}
		if len(ls) == n {
			return port, nil
		}
	}
	return 0, errors.New("no adjacent ports are free")
}

func TestMain(m *testing.M) {
	if child() {
		return
	}
	code := pgtest.Main(m)
	if k := shared.broker; k != nil {
		k.end()
	}
	os.Exit(code)
}
