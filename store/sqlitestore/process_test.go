package sqlitestore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/store"
)

// The tests of this file start this binary again, as another process: TestMain
// then runs the named child instead of the tests.
const childEnv, pathEnv = "SEMEL_TEST_CHILD", "SEMEL_TEST_PATH"

var children = map[string]func(s *Store) error{"load": load, "race": race}

func TestMain(m *testing.M) {
	child, ok := children[os.Getenv(childEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	s, err := Open(context.Background(), os.Getenv(pathEnv), nil)
	if err == nil {
		err = child(s)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// spawn starts a child process. The scanner reads its output.
func spawn(t *testing.T, name, path string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+name, pathEnv+"="+path)
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
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // harmless if it has ended
		_ = cmd.Wait()
	})
	return cmd, in, bufio.NewScanner(out)
}

// load claims and settles until it is killed, and says so of each that was
// acknowledged.
func load(s *Store) error {
	ctx := context.Background()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				value := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
				f, err := s.Claim(ctx, proposal(value))
				if err != nil || !f.Won {
					fmt.Println("error", f.Won, err)
					return
				}
				fmt.Println("claimed", value)
				if err := s.Settle(ctx, f.Record.Lease(), completion("result of "+value)); err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Println("settled", value)
			}
		})
	}
	all.Wait()
	return nil
}

const kills = 20

func TestCrash_ProcessKilled_ConfirmedRecordsStay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	var claimed, settled []string
	for range kills {
		cmd, _, lines := spawn(t, "load", path)
		for left := 20 + rand.IntN(300); lines.Scan(); left-- {
			if left == 0 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			switch what, value, _ := strings.Cut(lines.Text(), " "); what {
			case "claimed":
				claimed = append(claimed, value)
			case "settled":
				settled = append(settled, value)
			case "error":
				t.Fatalf("the child says: %s", lines.Text())
			}
		}
		_ = cmd.Wait() // killed
	}
	s := openAt(t, path, nil)
	for _, value := range claimed {
		if _, err := s.Get(context.Background(), testKey(value)); err != nil {
			t.Errorf("acknowledged claim of %s: %v", value, err)
		}
	}
	for _, value := range settled {
		if r := get(t, s, value); r.State != store.Completed || string(r.Outcome.Body) != "result of "+value {
			t.Errorf("acknowledged settlement of %s: it is %v with body %q", value, r.State, r.Outcome.Body)
		}
	}
	var verdict string
	if err := s.reads.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity_check says %q, error %v", verdict, err)
	}
	t.Logf("%d kills, %d acknowledged claims, %d acknowledged settlements, none lost", kills, len(claimed), len(settled))
}

const raceKeys = 200

// race claims keys that another process claims too, once it is told to start.
func race(s *Store) error {
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for i := range raceKeys {
		f, err := s.Claim(context.Background(), proposal(strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if f.Won {
			fmt.Println("won", i)
		}
	}
	return nil
}

func TestClaim_ProcessesRace_OneWins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	openAt(t, path, nil)
	const n = 3
	var lines [n]*bufio.Scanner
	var ins [n]io.WriteCloser
	for i := range n {
		_, ins[i], lines[i] = spawn(t, "race", path)
	}
	for i := range n {
		if !lines[i].Scan() || lines[i].Text() != "ready" {
			t.Fatalf("child %d says %q", i, lines[i].Text())
		}
	}
	for _, in := range ins {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	wins := map[string]int{}
	var all sync.WaitGroup
	for _, l := range lines {
		all.Go(func() {
			for l.Scan() {
				what, key, _ := strings.Cut(l.Text(), " ")
				if what != "won" {
					t.Errorf("a child says: %s", l.Text())
				}
				mu.Lock()
				wins[key]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i := range raceKeys {
		if won := wins[strconv.Itoa(i)]; won != 1 {
			t.Errorf("key %d was won %d times", i, won)
		}
	}
}
