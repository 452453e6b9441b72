package architecture

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// own says which modules of others each adapter may require directly, by the
// beginning of their paths. Commands and tests may require what they need.
var own = map[string][]string{
	"store/sqlitestore":            {"modernc.org/sqlite"},
	"store/pgstore":                {"github.com/jackc/pgx/"},
	"store/redisstore":             {"github.com/redis/"},
	"store/dynamostore":            {"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"},
	"consume/semelkafka":           {"github.com/twmb/franz-go"},
	"consume/semelamqp":            {"github.com/rabbitmq/amqp091-go"},
	"consume/semelkafka/kafkatest": {"github.com/twmb/franz-go", "github.com/jackc/pgx"},
	"consume/semelkafka/kafkapg":   {"github.com/twmb/franz-go", "github.com/jackc/pgx"}, // joins an adapter and a store
	"consume/semelnats":            {"github.com/nats-io/"},
	"consume/semelnats/natstest":   {"github.com/nats-io/"},
	"consume/semelsqs":             {"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"},
	"consume/semelpulsar":          {"github.com/apache/pulsar-client-go"},
	"consume/semelwatermill":       {"github.com/ThreeDotsLabs/watermill"},
	"semellambda":                  {"github.com/aws/aws-lambda-go"},
	"semelhttp/semelgin":           {"github.com/gin-gonic/gin"},
	"semelhttp/semelecho":          {"github.com/labstack/echo/"},
	"semelhttp/semelfiber":         {"github.com/gofiber/fiber/", "github.com/valyala/fasthttp"},
	"semelconnect":                 {"connectrpc.com/connect", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc"},
	"semelgrpc":                    {"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc"},
	"semelmcp":                     {"github.com/modelcontextprotocol/go-sdk"},
	"semelotel":                    {"go.opentelemetry.io/otel"},
}

// mod is what the tests need of a go.mod.
type mod struct {
	dir     string
	Module  struct{ Path string }
	Go      string
	Require []struct {
		Path     string
		Version  string
		Indirect bool
	}
	Replace []struct{ Old, New struct{ Path string } }
}

// run is the output of a go command in a directory of the repository, outside
// of the workspace.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(dir))
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
	}
	return string(out)
}

func modules(t *testing.T) []mod {
	t.Helper()
	files, err := repo.Files("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var ms []mod
	for _, f := range files {
		m := mod{dir: f.Dir()}
		if err := json.Unmarshal([]byte(run(t, m.dir, "mod", "edit", "-json")), &m); err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	return ms
}

// moduleDirs are the directories of all modules, found once.
var moduleDirs = sync.OnceValues(func() ([]string, error) {
	files, err := repo.Files("go.mod")
	var dirs []string
	for _, f := range files {
		dirs = append(dirs, f.Dir())
	}
	return dirs, err
})

// moduleOf is the directory of the module that a directory belongs to.
func moduleOf(t *testing.T, dir string) string {
	t.Helper()
	dirs, err := moduleDirs()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		if slices.Contains(dirs, dir) {
			return dir
		}
	}
	return "."
}

func TestModule_Root_RequiresNothing(t *testing.T) {
	if lines := strings.Fields(run(t, ".", "list", "-m", "all")); !slices.Equal(lines, []string{repo.Module}) {
		t.Errorf("go.mod:1: the module list of the root is %q, want itself alone", lines)
	}
	for _, m := range modules(t) {
		if m.dir == "." && (len(m.Require) > 0 || len(m.Replace) > 0) {
			t.Errorf("go.mod: requires %v and replaces %v, want neither", m.Require, m.Replace)
		}
	}
}

func TestModule_Adapter_RequiresItsDependencyOnly(t *testing.T) {
	for _, m := range modules(t) {
		if m.dir == "." || fits("cmd/...", m.dir) || fits("scripts/...", m.dir) || fits("test/...", m.dir) || fits("examples/...", m.dir) {
			continue
		}
		allowed, known := own[m.dir]
		if !known {
			t.Errorf("%s/go.mod: no rule says what this adapter may require; add it to the table of this test", m.dir)
		}
		for _, r := range m.Require {
			ours := r.Path == repo.Module || strings.HasPrefix(r.Path, repo.Module+"/")
			fits := slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(r.Path, p) })
			if known && !r.Indirect && !ours && !fits {
				t.Errorf("%s/go.mod: requires %s directly; only %v are its own", m.dir, r.Path, allowed)
			}
		}
	}
}

// A go.mod file requires the modules of this repository at v0.0.0 and replaces
// nothing, because "go install module@version" refuses a go.mod with a replace
// line. The release sets the versions.
func TestGoMod_OwnModules_RequiredAtV000WithoutReplace(t *testing.T) {
	for _, m := range modules(t) {
		for _, r := range m.Replace {
			t.Errorf("%s/go.mod: replaces %s; go.work has the replace lines for this tree", m.dir, r.Old.Path)
		}
		requiresRoot := false
		for _, r := range m.Require {
			requiresRoot = requiresRoot || r.Path == repo.Module
			if _, ours := directory(r.Path); ours && r.Version != "v0.0.0" {
				t.Errorf("%s/go.mod: requires %s at %s, want v0.0.0", m.dir, r.Path, r.Version)
			}
		}
		if m.dir != "." && !fits("scripts/...", m.dir) && !requiresRoot {
			t.Errorf("%s/go.mod: does not require the root module; a part of the repository that does not use it belongs elsewhere", m.dir)
		}
	}
}

// All modules need the same version of Go, so that the README can name one.
func TestGoMod_GoVersion_SameInEveryModule(t *testing.T) {
	all := modules(t)
	for _, m := range all {
		if m.Go != all[0].Go {
			t.Errorf("%s/go.mod: go %s, but %s/go.mod has go %s", m.dir, m.Go, all[0].dir, all[0].Go)
		}
	}
	if work := workspace(t); work.Go != all[0].Go {
		t.Errorf("go.work: go %s, but %s/go.mod has go %s", work.Go, all[0].dir, all[0].Go)
	}
}

// work is what the tests need of go.work.
type work struct {
	Go      string
	Use     []struct{ DiskPath string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func workspace(t *testing.T) (w work) {
	t.Helper()
	if err := json.Unmarshal([]byte(run(t, ".", "work", "edit", "-json", "go.work")), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// go.work uses each module, so that "go test work" runs its tests, and replaces
// version v0.0.0 of each by its directory, so that the modules find each other.
func TestWorkspace_EveryModule_UsedAndReplaced(t *testing.T) {
	w := workspace(t)
	var uses []string
	for _, u := range w.Use {
		uses = append(uses, path.Clean(filepath.ToSlash(u.DiskPath)))
	}
	replaced := map[string]string{} // directory by path
	for _, r := range w.Replace {
		if r.Old.Version != "v0.0.0" {
			t.Errorf("go.work: replaces %s without the version v0.0.0", r.Old.Path)
		}
		replaced[r.Old.Path] = path.Clean(filepath.ToSlash(r.New.Path))
	}
	for _, m := range modules(t) {
		if !slices.Contains(uses, m.dir) {
			t.Errorf("go.work: does not use ./%s; add it to the use lines", m.dir)
		}
		if replaced[m.Module.Path] != m.dir {
			t.Errorf("go.work: replaces %s by %q; want: replace %s v0.0.0 => ./%s", m.Module.Path, replaced[m.Module.Path], m.Module.Path, m.dir)
		}
	}
}
