package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/repo"
)

// additive is the migration that the later version has and the earlier one has not.
const additive = `ALTER TABLE "semel".semel_record ADD COLUMN later bytea;
CREATE TABLE "semel".semel_later (x integer);
UPDATE "semel".semel_meta SET schema = 2;
`

// laterVersion builds this test's program with one more migration.
func laterVersion(t *testing.T) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	migration := filepath.Join(root, "store/pgstore/internal/schema/migration/0002_later.up.sql")
	if _, err := os.Stat(migration); err == nil {
		t.Fatalf("%s exists: give the later version the next number", migration)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{migration: write("later.sql", additive)}})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "later.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", write("overlay.json", string(overlay)), "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return program
}

// fleet is the processes, and what they were told.
type fleet struct {
	t      *testing.T
	url    string
	mu     sync.Mutex
	told   map[string]map[string]bool // by form and key: the answers
	last   int                        // the highest key
	counts map[*worker]int
}

type worker struct {
	f     *fleet
	stop  func()          // ends its input
	ended <-chan struct{} // closed at its end, after its last line
	rest  []byte          // of a line that has not ended
	err   string          // read it after ended
}

// start starts a process of a version.
func (f *fleet) start(program string) *worker {
	f.t.Helper()
	f.mu.Lock()
	first := max(0, f.last-5) // so that keys of others are repeated
	f.mu.Unlock()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", workerEnv, f.url, first))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	w := &worker{f: f, stop: sync.OnceFunc(func() { _ = in.Close() })}
	cmd.Stdout = w
	w.ended = proctest.Run(f.t, cmd).Ended()
	return w
}

// Write implements io.Writer. It gets the output of the process.
func (w *worker) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.told(string(line))
		w.rest = rest
	}
}

// told keeps what a line says.
func (w *worker) told(line string) {
	var form, value string
	var n int
	if _, err := fmt.Sscanf(line, "told %s %d %s", &form, &n, &value); err != nil {
		w.err += line
		return
	}
	key := fmt.Sprint(form, " ", n)
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	if w.f.told[key] == nil {
		w.f.told[key] = map[string]bool{}
	}
	w.f.told[key][value] = true
	w.f.last = max(w.f.last, n)
	w.f.counts[w]++
}

// works waits until each of the workers has had n more answers.
func (f *fleet) works(what string, n int, all ...*worker) {
	f.t.Helper()
	f.mu.Lock()
	target := map[*worker]int{}
	for _, w := range all {
		target[w] = f.counts[w] + n
	}
	f.mu.Unlock()
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(10 * time.Millisecond) {
		missing := 0
		f.mu.Lock()
		for w, want := range target {
			if f.counts[w] < want {
				missing++
			}
		}
		f.mu.Unlock()
		if missing == 0 {
			return
		}
		for _, w := range all {
			select {
			case <-w.ended:
				f.t.Fatalf("%s: a process has ended: %s", what, w.err)
			default:
			}
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s: after 2 minutes %d processes have no %d answers", what, missing, n)
		}
	}
}

// leave ends a process in an orderly way.
func (w *worker) leave() {
	w.f.t.Helper()
	w.stop()
	<-w.ended
	if w.err != "" {
		w.f.t.Errorf("a process: %s", w.err)
	}
}

// Processes of the earlier version go on, and start again, after a process of the later
// one has migrated, and all of them answer each key alike. After a migration that is not
// additive the earlier version refuses to start.
func TestCampaign_RollingUpgrade_BothVersionsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a second version")
	}
	answers := 20
	if figure.Long() {
		answers = 1000
	}
	srv := pgtest.Start(t, pgtest.Fast...)
	exec := func(sql string, to ...any) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), srv.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if len(to) > 0 {
			err = conn.QueryRow(t.Context(), sql).Scan(to...)
		} else {
			_, err = conn.Exec(t.Context(), sql)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE effect (n int, value text)")
	later := laterVersion(t)
	earlier, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, url: srv.URL(), told: map[string]map[string]bool{}, counts: map[*worker]int{}}
	old1, old2 := f.start(earlier), f.start(earlier)
	f.works("before the upgrade", answers, old1, old2)
	new1 := f.start(later)
	f.works("beside the later version", answers, old1, old2, new1)
	number := 0
	if exec(`SELECT schema FROM semel.semel_meta`, &number); number != 2 {
		t.Fatalf("the schema has the number %d, want 2: the later version has not migrated", number)
	}
	old2.leave()
	old3 := f.start(earlier)
	f.works("after a restart of the earlier version", answers, old1, old3, new1)
	new2 := f.start(later)
	f.works("all together", answers, old1, old3, new1, new2)
	old1.leave()
	old3.leave()
	f.works("after the upgrade", answers, new1, new2)
	exec(`UPDATE semel.semel_meta SET compatible = 2`)
	refused := f.start(earlier)
	if <-refused.ended; !strings.Contains(refused.err, "schema") {
		t.Errorf("after a migration that is not additive the earlier version says %q", refused.err)
	}
	new1.leave()
	new2.leave()

	wrong, keys := int64(0), 0
	for key, values := range f.told {
		keys++
		effects := 1
		if n, ok := strings.CutPrefix(key, "atomic "); ok {
			exec("SELECT count(*) FROM effect WHERE n = "+n, &effects)
		}
		if len(values) != 1 || effects != 1 {
			wrong++
			t.Errorf("%s has %d effects, and the answers %v", key, effects, values)
		}
	}
	figure.Report(t, figure.Figure{
		Claim: "processes of two versions work on one database during a rolling upgrade, also after a restart of the earlier one: a key has one answer, and an Atomic call one effect",
		Where: "pgstore", Trials: int64(keys), Failures: wrong, Detail: "6 processes, one of which was refused after a migration that is not additive",
	})
}
