package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The test binary runs itself as a worker when this is set: to the path of the
// store that they share.
const workerEnv = "SEMEL_CHAOS_STORE"

const (
	lease                 = 500 * time.Millisecond
	op    semel.Operation = "chaos"
)

func call(key string) semel.Call { return semel.NewCall(op.Shared(), key, semel.NoPayload()) }

func TestMain(m *testing.M) {
	if path := os.Getenv(workerEnv); path != "" {
		if err := work(context.Background(), path, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func open(ctx context.Context, path string) (*semel.Guard, *sqlitestore.Store, error) {
	st, err := sqlitestore.Open(ctx, path, nil)
	if err != nil {
		return nil, nil, err
	}
	g, err := semel.New(st, &semel.Options{Lease: lease})
	return g, st, err
}

// work runs each key that it reads, and reports in words: "started" from the
// handler, which then waits for a line, and "ended" with what its context and
// its settlement came to.
func work(ctx context.Context, path string, in io.Reader, out io.Writer) error {
	g, st, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer st.Close()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		key := lines.Text()
		var cause error
		_, err := g.Run(ctx, call(key), func(ctx context.Context, x *semel.Execution) (semel.Outcome, error) {
			fmt.Fprintln(out, "started", x.Fence())
			lines.Scan()
			select { // its own clock has already told, or tells as soon as the runtime's timers are looked at
			case <-ctx.Done():
			case <-time.After(lease / 6):
			}
			cause = context.Cause(ctx)
			return semel.Outcome{Body: []byte("zombie")}, nil // goes on all the same
		})
		fmt.Fprintf(out, "ended cancelled=%v refused=%v err=%v\n", errors.Is(cause, semel.ErrLeaseLost), errors.Is(err, semel.ErrLeaseLost), err)
	}
	return lines.Err()
}

// worker is a child process that the test freezes.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startWorker(t *testing.T, path string) *worker {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), workerEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = w.signal(syscall.SIGCONT)
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: its error says so
	})
	return w
}

func (w *worker) signal(s syscall.Signal) error { return w.cmd.Process.Signal(s) }

func (w *worker) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(w.in, line); err != nil {
		t.Fatal(err)
	}
}

func (w *worker) hear(t *testing.T) string {
	t.Helper()
	if !w.out.Scan() {
		t.Fatalf("the worker fell silent: %v", w.out.Err())
	}
	return w.out.Text()
}
