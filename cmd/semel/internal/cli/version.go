package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

type versionCmd struct{}

// Help implements kong.HelpProvider.
func (versionCmd) Help() string {
	return `Prints the version of the module, the revision of the source (if the build knows it), the Go version and the platform. semel --version prints the same line.

Examples:

    semel version
    semel version --json
`
}

func (versionCmd) Run(e *env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(thisBuild())
	}
	return thisBuild().write(e.stdout)
}

// versionFlag prints the version as soon as the flag is parsed.
type versionFlag bool

// BeforeReset implements a hook of kong.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := thisBuild().write(app.Stdout); err != nil {
		return err
	}
	app.Exit(ExitOK)
	return nil
}

// build describes how a binary was built.
type build struct {
	Version  string `json:"version"`            // of the module cmd/semel; (devel) for a build from a clone without a version
	Revision string `json:"revision,omitempty"` // of the version control system
	Modified bool   `json:"modified,omitempty"` // the source had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) write(w io.Writer) error {
	parts := []string{"semel " + b.Version}
	if b.Revision != "" {
		revision := "revision " + b.Revision
		if b.Modified {
			revision += " with changes"
		}
		parts = append(parts, revision)
	}
	_, err := fmt.Fprintln(w, strings.Join(append(parts, b.Go, b.Platform), ", "))
	return err
}
