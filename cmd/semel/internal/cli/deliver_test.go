//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// alone copies semel into a folder of its own and returns its path.
func alone(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	own := filepath.Join(t.TempDir(), "semel")
	if err := os.Link(path, own); err != nil {
		t.Fatal(err)
	}
	return own
}

// script writes a helper that prints its process number and its arguments.
func script(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "semel-deliver"), []byte("#!/bin/sh\necho $$ \"$@\" $TOLD\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// semel deliver becomes the helper, so that signals reach it and its exit code counts.
func TestDeliver_HelperBesideOrInPath_ReplacesProcess(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"beside", "in PATH", "beside a link"} {
		t.Run(place, func(t *testing.T) {
			semel, path := alone(t), t.TempDir()
			switch place {
			case "beside":
				script(t, filepath.Dir(semel))
			case "in PATH":
				script(t, path)
			default:
				script(t, filepath.Dir(semel))
				link := filepath.Join(t.TempDir(), "s")
				if err := os.Symlink(semel, link); err != nil {
					t.Fatal(err)
				}
				semel = link
			}
			cmd := exec.Command(semel, "--json", "deliver", "--help", "--from", "kafka://a/x y", "--", "z")
			cmd.Env = []string{"PATH=" + path, "TOLD=told"}
			out, err := cmd.Output()
			want := fmt.Sprintf("%d --json --help --from kafka://a/x y -- z told\n", cmd.Process.Pid)
			if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != 7 || string(out) != want {
				t.Errorf("%v\n got %q\nwant %q", err, out, want)
			}
		})
	}
}

func TestDeliver_NoHelper_ErrorSaysHowToInstall(t *testing.T) {
	t.Parallel()
	semel := alone(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(semel), "semel-deliver"), nil, 0o600); err != nil { // no program
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(semel, "deliver", "--from", "kafka://a/x")
	cmd.Env, cmd.Stderr = []string{"PATH=" + t.TempDir()}, &stderr
	err := cmd.Run()
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ended.ExitCode() != program.ExitFailed || strings.Count(stderr.String(), "\n") != 1 ||
		!strings.HasPrefix(stderr.String(), "semel deliver: the program semel-deliver was found neither in the folder of semel ("+filepath.Dir(semel)+") nor in PATH; install it with: go install github.com/semel-go/semel/cmd/semel/semel-deliver@latest") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

func TestHelp_NamesDeliver(t *testing.T) {
	t.Parallel()
	if r := command(t, "--help"); !strings.Contains(r.stdout, "\n  deliver ") {
		t.Errorf("%s", r.stdout)
	}
}
