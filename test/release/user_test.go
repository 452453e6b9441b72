package release

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// program is a user's first program.
const program = `package main

import (
	"context"
	"fmt"
	"log"

	"` + repo.Module + `"
	"` + repo.Module + `/store/memstore"
)

func main() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		call := semel.Call{Operation: "charge", Tenant: "ann", Key: "order-1", Payload: semel.NoPayload()}
		err := semel.Once(context.Background(), guard, call, func(context.Context, *semel.Execution) error {
			fmt.Println("charged")
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
}
`

// user does what a user does who has the module proxy and an empty directory.
func user(t *testing.T, dir string) {
	host := t.TempDir()
	cache := strings.TrimSpace(command(t, host, nil, "go", "env", "GOMODCACHE"))
	proxies := strings.TrimSpace(command(t, host, nil, "go", "env", "GOPROXY"))
	env := []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -trimpath -modcacherw", "CGO_ENABLED=0", "GOENV=off",
		"GOPROXY=file://" + filepath.Join(dir, "proxy") + ",file://" + cache + "/cache/download," + proxies,
		"GONOSUMDB=" + repo.Module + "," + repo.Module + "/*", // GOPRIVATE would bypass the proxy
		"GOMODCACHE=" + filepath.Join(host, "mod"), "GOBIN=" + filepath.Join(host, "bin"),
	}
	app := filepath.Join(host, "app")
	write(t, filepath.Join(app, "go.mod"), "module example.com/app\n\ngo 1.26.0\n")
	write(t, filepath.Join(app, "main.go"), program)

	t.Run("GoGet_EveryModule", func(t *testing.T) {
		get := []string{"get"}
		for name := range files(t, filepath.Join(dir, "proxy")) {
			if module, ok := strings.CutSuffix(name, "/@v/"+version+".mod"); ok {
				get = append(get, module+"@"+version)
			}
		}
		modules := len(get) - 1
		if modules < 2 {
			t.Fatalf("the proxy has %d modules, want all that are released", modules)
		}
		command(t, app, env, "go", get...)
		t.Logf("%d modules", modules)
	})
	t.Run("FirstProgram_ChargesOnce", func(t *testing.T) {
		if out := command(t, app, env, "go", "run", "."); strings.Count(out, "charged\n") != 1 {
			t.Errorf("the program printed %q, want \"charged\" once", out)
		}
	})
	t.Run("GoRun_NamesVersion", func(t *testing.T) {
		if out := command(t, host, env, "go", "run", repo.Module+"/cmd/semel@"+version, "version"); !strings.Contains(out, "semel "+version+",") {
			t.Errorf("semel version prints %q, want %s", out, version)
		}
	})
	t.Run("DemoWithoutClone_ChargesOnce", func(t *testing.T) { // it starts itself again as proxy and payment service
		out := command(t, host, env, "go", "run", repo.Module+"/cmd/semel/demo@"+version, "--orders=100", "--kills=1")
		if !strings.Contains(out, "With Semel every order was charged exactly once") {
			t.Errorf("the demo printed %s", out)
		}
	})
	t.Run("GoInstall_SameBytesAsRelease", func(t *testing.T) {
		command(t, host, env, "go", "install", "-ldflags=-s -w", repo.Module+"/cmd/semel@"+version)
		name := "semel_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH
		released, err := os.ReadFile(filepath.Join(dir, "files", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(released) != read(t, filepath.Join(host, "bin", "semel")) {
			t.Errorf("go install makes other bytes than %s", name)
		}
	})
	t.Run("ProgramsOfPages_Build", func(t *testing.T) {
		root, err := repo.Root()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, page := range []string{"README.md", "docs/tutorial.md"} {
			blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllStringSubmatch(read(t, filepath.Join(root, filepath.FromSlash(page))), -1)
			if len(blocks) == 0 {
				t.Errorf("%s has no complete program: no go block begins with \"package main\"", page)
			}
			for _, b := range blocks {
				write(t, filepath.Join(app, "page"+string(rune('a'+n)), "main.go"), b[1])
				n++
			}
		}
		command(t, app, env, "go", "vet", "./...")
		t.Logf("%d programs", n)
	})
}
