// Package helper runs a program beside semel as if it were a command of semel, as git
// does with its helpers. Such a program is a module of its own, because semel must not
// link the clients that it needs.
package helper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// Find returns the path of a helper: in the folder of this program, and then by PATH.
// Its error says how to install the helper.
func Find(name string) (string, error) {
	file := name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	for _, dir := range folders() {
		path := filepath.Join(dir, file)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0) {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "", fmt.Errorf("the program %s was found neither in the folder of semel (%s) nor in PATH; install it with: go install github.com/semel-go/semel/cmd/semel/%s@%s (in a clone: go build -o %s ./cmd/semel/%s)",
		name, strings.Join(folders(), ", "), name, release(program.ThisBuild().Version), name, name)
}

// folders are the folder of this program, and the one that a link to it leads to.
func folders() (list []string) {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	list = append(list, filepath.Dir(path))
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != list[0] {
		list = append(list, filepath.Dir(real))
	}
	return list
}

// pseudo is the end of a version that Go makes from a commit.
var pseudo = regexp.MustCompile(`[.-][0-9]{14}-[0-9a-f]{12}$`)

// release is the version to install beside a build: its own, if it is a release.
func release(version string) string {
	if !strings.HasPrefix(version, "v") || strings.Contains(version, "+") || pseudo.MatchString(version) {
		return "latest"
	}
	return version
}
