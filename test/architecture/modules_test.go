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

// own lists the foreign modules that each adapter may require directly, by the
// beginning of their paths. Commands and tests may require any module.
var own = map[string][]string{
	"store/sqlitestore":            {"modernc.org/sqlite"},
	"store/pgstore":                {"github.com/jackc/pgx/"},
	"store/redisstore":             {"github.com/redis/"},
	"store/dynamostore":            {"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"},
	"store/mysqlstore":             {"github.com/go-sql-driver/mysql"},
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
	"semelgrpc":                    {"google.golang.org/grpc", "google.golang.org/protobuf"},
	"semelotel":                    {"go.opentelemetry.io/otel"},
}

// mod is the part of a go.mod that the tests read.
type mod struct {
	dir     string
	Require []struct {
		Path     string
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

func TestRootModule_RequiresNothing(t *testing.T) {
	if lines := strings.Fields(run(t, ".", "list", "-m", "all")); !slices.Equal(lines, []string{repo.Module}) {
		t.Errorf("go.mod:1: the module list of the root is %q, want itself alone", lines)
	}
	for _, m := range modules(t) {
		if m.dir == "." && (len(m.Require) > 0 || len(m.Replace) > 0) {
			t.Errorf("go.mod: requires %v and replaces %v, want neither", m.Require, m.Replace)
		}
	}
}

func TestAdapters_RequireOnlyTheirOwnDependency(t *testing.T) {
	for _, m := range modules(t) {
		if m.dir == "." || fits("cmd/...", m.dir) || fits("test/...", m.dir) || fits("examples/...", m.dir) {
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

// Each module builds beside the others as they are in this tree: the root is
// required, and replaced by a relative path.
func TestModules_ReplaceByRelativePaths(t *testing.T) {
	for _, m := range modules(t) {
		replaced := map[string]bool{}
		for _, r := range m.Replace {
			replaced[r.Old.Path] = true
			at := path.Join(m.dir, r.New.Path)
			if want, ok := directory(r.Old.Path); !ok || at != want || path.IsAbs(r.New.Path) {
				t.Errorf("%s/go.mod: replaces %s by %s, which is not its place in this repository", m.dir, r.Old.Path, r.New.Path)
			}
		}
		for _, r := range m.Require {
			if _, ours := directory(r.Path); ours && !replaced[r.Path] {
				t.Errorf("%s/go.mod: requires %s without a replace by a relative path", m.dir, r.Path)
			}
		}
		if m.dir != "." && !replaced[repo.Module] {
			t.Errorf("%s/go.mod: does not require the root module; a part of the repository that does not use it belongs elsewhere", m.dir)
		}
	}
}

func TestWorkspace_UsesEveryModule(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal([]byte(run(t, ".", "work", "edit", "-json", "go.work")), &work); err != nil {
		t.Fatal(err)
	}
	var uses []string
	for _, u := range work.Use {
		uses = append(uses, path.Clean(filepath.ToSlash(u.DiskPath)))
	}
	for _, m := range modules(t) {
		if !slices.Contains(uses, m.dir) {
			t.Errorf("go.work: does not use ./%s, so \"go test work\" passes it over", m.dir)
		}
	}
}
