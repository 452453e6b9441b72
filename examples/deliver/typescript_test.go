package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

var errNoTypeScript = errors.New("the compiler of TypeScript is not to be had")

// compiled checks the types of service.ts and returns a script that the installed node
// can run: service.ts itself if node strips types, and otherwise the compiler's output.
func compiled(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(cache, "semel", "examples-deliver")
	out := t.TempDir()
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "tsconfig.json", "service.ts"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{project, out} { // the output is a module by its package.json
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(program string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = project
		return cmd.CombinedOutput()
	}
	tsc := filepath.Join(project, "node_modules", ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		if text, err := run("npm", "install", "--silent", "--no-audit", "--no-fund"); err != nil {
			proctest.Need(t, fmt.Errorf("%w: npm install: %w: %s", errNoTypeScript, err, text), errNoTypeScript)
		}
	}
	if text, err := run(tsc, "--outDir", out); err != nil {
		t.Fatalf("tsc: %v\n%s", err, text)
	}
	if exec.CommandContext(t.Context(), "node", "-e", "process.exit(process.features.typescript ? 0 : 1)").Run() == nil {
		return "service.ts"
	}
	return filepath.Join(out, "service.js")
}
