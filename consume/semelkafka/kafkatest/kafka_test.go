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
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafka is a real broker, in a process of its own that ends with this one.
type kafka struct {
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

// real is the address of the real broker. Without one the test is skipped,
// loudly: what it shows on a real broker, other tests show on kfake. It has to
// be asked for, since it is fetched from Maven Central, and two processors are
// few for a broker beside everything else.
func real(t testing.TB) string {
	t.Helper()
	if os.Getenv("SEMEL_TEST_KAFKA") != "1" && os.Getenv("SEMEL_EVIDENCE") != "1" {
		t.Skip("NOT TESTED ON A REAL KAFKA, but on kfake: set SEMEL_TEST_KAFKA=1 (make test-kafka)")
	}
	shared.once.Do(func() { shared.broker, shared.err = startKafka() })
	if shared.err != nil {
		if !errors.Is(shared.err, errNoKafka) || os.Getenv("SEMEL_TEST_KAFKA") == "1" { // it was asked for by name
			t.Fatal(shared.err)
		}
		t.Skipf("FELL BACK TO KFAKE, NOT TESTED ON A REAL KAFKA: %v", shared.err)
	}
	return shared.broker.addr(0)
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

// missing is the script's exit status where Java, Maven or Maven Central is.
const (
	missing = 3
	noBash  = 127
)

// startKafka starts a broker of its own.
func startKafka() (*kafka, error) {
	bin, err := script()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 11*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, "fetch").CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && (e.ExitCode() == missing || e.ExitCode() == noBash) {
		return nil, fmt.Errorf("%w: %s", errNoKafka, bytes.TrimSpace(out))
	}
	if err != nil {
		return nil, fmt.Errorf("%s fetch: %w\n%s", bin, err, out)
	}
	dir, err := os.MkdirTemp("", "kafkatest")
	if err != nil {
		return nil, err
	}
	port, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	k := &kafka{dir: dir, port: port}
	return k, k.start(bin)
}

func (k *kafka) start(bin string) error {
	k.cmd = exec.Command(bin, "run", k.dir, fmt.Sprint(k.port))
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
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
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
	return fmt.Errorf("the broker does not answer: %w", err)
}

// stop kills the broker.
func (k *kafka) stop() {
	_ = k.cmd.Process.Kill()
	<-k.gone
}

// addr is where the broker answers: 0 in the clear, 2 with SASL.
func (k *kafka) addr(n int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(k.port+n)) }

// freePorts finds adjacent ports that nobody listens to.
func freePorts(n int) (int, error) {
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := first.Addr().(*net.TCPAddr).Port
		ls, free := []net.Listener{first}, true
		for i := 1; i < n; i++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port+i)))
			if err != nil {
				free = false
				break
			}
			ls = append(ls, l)
		}
		for _, l := range ls {
			_ = l.Close()
		}
		if free {
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
	if k := shared.broker; k != nil && shared.err == nil {
		k.stop()
		_ = os.RemoveAll(k.dir)
	}
	os.Exit(code)
}
