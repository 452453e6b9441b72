package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

const version = "v0.99.0"

// maxProgram is the most bytes of a program, or of an archive with its images.
const maxProgram = 50_000_000

// TestRelease makes a release twice and looks at it as its users do. The parts
// are subtests because they share the release.
func TestRelease(t *testing.T) {
	if os.Getenv("SEMEL_TEST_RELEASE") == "" {
		t.Skip("makes whole releases, which takes minutes; run it with: make release-test")
	}
	if runtime.GOOS != "linux" {
		skip(t, "releases are made on Linux")
	}
	tree := snapshot(t)
	t.Run("TreeWithChanges_Refused", func(t *testing.T) {
		name := filepath.Join(tree, "new.txt")
		write(t, name, "not committed")
		defer os.Remove(name)
		refused(t, tree, "commit or stash them", version)
	})
	t.Run("NoChangelogEntry_Refused", func(t *testing.T) { refused(t, tree, "## v0.98.0", "v0.98.0") })
	t.Run("NoVersion_Refused", func(t *testing.T) { refused(t, tree, "give a version") })
	t.Run("MajorVersion2_Refused", func(t *testing.T) { refused(t, tree, "/v2", "v2.0.0") })

	dir := makeRelease(t, tree)
	if t.Failed() {
		return
	}
	t.Run("MadeTwice_SameBytes", func(t *testing.T) {
		again := makeRelease(t, tree, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOFLAGS=-tags=none", "GOARCH=386")
		for _, part := range []string{"files", "image", "proxy"} {
			same(t, filepath.Join(dir, part), filepath.Join(again, part))
		}
	})
	t.Run("Files_HaveChecksums", func(t *testing.T) { checksums(t, filepath.Join(dir, "files")) })
	t.Run("Programs_NameVersionAndNoLocalPath", func(t *testing.T) { programs(t, dir) })
	t.Run("User", func(t *testing.T) { user(t, dir) })
	t.Run("Container", func(t *testing.T) { container(t, dir) })
	for _, platform := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run("Build_"+strings.ReplaceAll(platform, "/", "_"), func(t *testing.T) {
			system, arch, _ := strings.Cut(platform, "/")
			env := []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0", "GOFLAGS=-trimpath"}
			command(t, tree, env, "go", append([]string{"list", "-export"}, released(t, tree)...)...) // it compiles, and does not link
		})
	}
}

// released are the packages that users can import or install.
func released(t *testing.T, tree string) []string {
	t.Helper()
	return slices.DeleteFunc(strings.Fields(command(t, tree, nil, "go", "list", "work")), func(name string) bool {
		name = strings.TrimPrefix(name, repo.Module)
		return strings.HasPrefix(name, "/test/") || strings.HasPrefix(name, "/examples/") || strings.HasPrefix(name, "/scripts/") || strings.HasSuffix(name, "test")
	})
}

// skip skips a part that this machine cannot run. With SEMEL_TEST_REQUIRE it
// fails, because root on Debian can run every part.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("SEMEL_TEST_REQUIRE") != "" {
		t.Fatalf("SEMEL_TEST_REQUIRE is set, but "+format, args...)
	}
	t.Skipf("NOT TESTED: "+format, args...)
}

// snapshot clones the repository, adds what is not committed, and writes a
// changelog entry for the version of the test.
func snapshot(t *testing.T) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	command(t, root, nil, "git", "clone", "-q", "--no-tags", ".", tree)
	changed := command(t, root, nil, "git", "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.Trim(changed, "\x00"), "\x00") {
		if name == "" {
			continue
		}
		to := filepath.Join(tree, name)
		_ = os.Remove(to)
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			command(t, root, nil, "cp", "-a", name, to)
		}
	}
	changelog := filepath.Join(tree, "CHANGELOG.md")
	write(t, changelog, read(t, changelog)+"\n## "+version+"\n")
	command(t, tree, nil, "git", "add", "-A")
	command(t, tree, nil, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "a tree to release")
	return tree
}

// makeRelease runs scripts/release with Linux on both architectures, or with
// the platforms of SEMEL_TEST_PLATFORMS.
func makeRelease(t *testing.T, tree string, env ...string) string {
	t.Helper()
	platforms := "linux/amd64 linux/arm64"
	if p := os.Getenv("SEMEL_TEST_PLATFORMS"); p != "" {
		platforms = p
	}
	dir := filepath.Join(t.TempDir(), "release")
	t.Log(command(t, tree, env, "scripts/release", version, "--out", dir, "--platforms", platforms))
	return dir
}

// refused checks that the script refuses to start and names the next step.
func refused(t *testing.T, tree, want string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "scripts/release", append(args, "--out", filepath.Join(t.TempDir(), "release"))...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("scripts/release %q: error %v, want one that says %q:\n%s", args, err, want, out)
	}
}

func checksums(t *testing.T, dir string) {
	sums := map[string]string{}
	for line := range strings.Lines(read(t, filepath.Join(dir, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	for name, content := range files(t, dir) {
		if sum := sha256.Sum256(content); name != "SHA256SUMS" && sums[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("SHA256SUMS has %q for %s, want %x", sums[name], name, sum)
		}
		if strings.HasPrefix(name, "semel_") && len(content) > maxProgram {
			t.Errorf("%s has %d bytes; the limit is %d", name, len(content), maxProgram)
		}
		delete(sums, name)
	}
	for name := range sums {
		t.Errorf("SHA256SUMS has a line for %s, which does not exist", name)
	}
}

// programs checks each program against its SBOM and the licence file.
func programs(t *testing.T, dir string) {
	dir = filepath.Join(dir, "files")
	licenses := read(t, filepath.Join(dir, "LICENSES.txt"))
	names, err := filepath.Glob(filepath.Join(dir, "*.cdx.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no SBOM in %s (%v)", dir, err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		program := strings.TrimSuffix(name, ".cdx.json")
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if info.Main.Version != version {
			t.Errorf("%s: version %s, want %s", program, info.Main.Version, version)
		}
		for _, path := range []string{home + "/", os.TempDir() + "/tmp."} { // where scripts/release has its module cache
			if bytes.Contains([]byte(read(t, program)), []byte(path)) {
				t.Errorf("%s: contains the local path %s", program, path)
			}
		}
		var sbom struct {
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal([]byte(read(t, name)), &sbom); err != nil {
			t.Fatal(err)
		}
		listed := map[string]string{}
		for _, c := range sbom.Components {
			listed[c.Name] = c.Version
		}
		for _, dep := range info.Deps {
			if listed[dep.Path] != dep.Version {
				t.Errorf("%s: has %s at %q, want %s", name, dep.Path, listed[dep.Path], dep.Version)
			}
			if !strings.HasPrefix(dep.Path, repo.Module) && !strings.Contains(licenses, "===== "+dep.Path+" "+dep.Version+"\n") {
				t.Errorf("LICENSES.txt: has no licence of %s %s", dep.Path, dep.Version)
			}
		}
	}
}

// same checks that two directories have the same files with the same content.
func same(t *testing.T, dir1, dir2 string) {
	t.Helper()
	first, second := files(t, dir1), files(t, dir2)
	if len(first) == 0 {
		t.Errorf("%s has no files", dir1)
	}
	for name, content := range first {
		if other, ok := second[name]; !ok || !bytes.Equal(content, other) {
			t.Errorf("%s/%s: %d bytes in the first release, in the second %d others", filepath.Base(dir1), name, len(content), len(other))
		}
		delete(second, name)
	}
	for name := range second {
		t.Errorf("%s/%s: only in the second release", filepath.Base(dir1), name)
	}
}

// files reads all files below a directory.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err == nil {
			found[filepath.ToSlash(rel)], err = os.ReadFile(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// command runs a command and returns its output; the test fails if it fails.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", fmt.Sprint(append(append(env, name), args...)), err, out)
	}
	return string(out)
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
