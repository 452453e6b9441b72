package program

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build describes how a binary was built.
type Build struct {
	Version  string `json:"version"`            // of the module cmd/semel; (devel) for a build from a clone without a version
	Revision string `json:"revision,omitempty"` // of the version control system
	Modified bool   `json:"modified,omitempty"` // the source had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisBuild describes this binary.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// Write writes the build as one line that begins with the name of a program.
func (b Build) Write(w io.Writer, name string) error {
	parts := []string{name + " " + b.Version}
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
