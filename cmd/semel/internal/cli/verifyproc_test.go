//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/verify"
	"github.com/semel-go/semel/store/pgstore/pgtest"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

func verifyCommand(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, append([]string{"verify"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

func TestVerify_ProcessRace_UsesProcesses(t *testing.T) {
	t.Parallel()
	url := database(t)
	cmd, stdout, stderr := verifyCommand(t, "--store", url, "--keys", "30", "--processes", "3", "--only", "process-race", "--json")
	err := cmd.Run()
	var got verify.Report
	if jerr := json.Unmarshal(stdout.Bytes(), &got); err != nil || jerr != nil || stderr.Len() > 0 {
		t.Fatalf("%v, %v: %s%s", err, jerr, stdout, stderr)
	}
	if c, _ := got.Result("process-race"); c.Verdict != verify.OK || c.Trials != 90 || got.Processes != 3 {
		t.Errorf("%+v", c)
	}
	if n := records(t, url); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// The processes race on the store that is tried, whatever the environment says
// is the store of semel proxy.
func TestVerify_ProcessRace_IgnoresStoreVariable(t *testing.T) {
	t.Parallel()
	tried, others := database(t), "sqlite:"+filepath.Join(t.TempDir(), "none.db")
	cmd, stdout, stderr := verifyCommand(t, "--store", tried, "--keys", "3", "--processes", "1", "--only", "process-race", "--json")
	cmd.Env = append(os.Environ(), "SEMEL_STORE="+others)
	err := cmd.Run()
	var got verify.Report
	if jerr := json.Unmarshal(stdout.Bytes(), &got); err != nil || jerr != nil {
		t.Fatalf("%v, %v: %s%s", err, jerr, stdout, stderr)
	}
	if c, _ := got.Result("process-race"); c.Verdict != verify.OK || c.Trials == 0 {
		t.Errorf("%+v", c)
	}
}

func TestVerify_PostgreSQL_Passes(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Durable...).URL()
	early, _, told := verifyCommand(t, "--store", url)
	if err := early.Run(); err == nil || !strings.Contains(told.String(), "semel migrate --store "+url) {
		t.Errorf("not migrated: %v: %s", err, told)
	}
	migrate, stdout, stderr := verifyCommand(t)
	migrate.Args = []string{migrate.Args[0], "migrate", "--store", url}
	if err := migrate.Run(); err != nil {
		t.Fatalf("migrate: %v: %s%s", err, stdout, stderr)
	}
	cmd, stdout, stderr := verifyCommand(t, "--store", url, "--keys", "30", "--json")
	err := cmd.Run()
	var got verify.Report
	if jerr := json.Unmarshal(stdout.Bytes(), &got); err != nil || jerr != nil || got.Failures > 0 || got.Trials == 0 {
		t.Errorf("%v, %v: %s%s", err, jerr, stdout, stderr)
	}
}

func TestVerify_Interrupted_LeavesNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	cmd, stdout, stderr := verifyCommand(t, "--store", url, "--keys", "100000", "--processes", "2", "--only", "claim-race,process-race")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, "records of verify", func() bool { return records(t, url) > 20 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != program.ExitFailed {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	if !strings.Contains(stdout.String(), "ok         cleanup") {
		t.Errorf("it told\n%s%s", stdout, stderr)
	}
	if n := records(t, url); n != 0 {
		t.Errorf("%d records are left", n)
	}
}
