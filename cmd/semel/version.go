package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker in releases: -ldflags "-X main.version=v1.2.3".
var version = ""

type versionCmd struct{}

// Help implements kong.HelpProvider.
func (versionCmd) Help() string {
	return `Examples:

    semel version
    semel version --json
`
}

// build is what a binary says of itself.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
	Platform string `json:"platform"`
}

func (versionCmd) Run(e *env) error {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	if e.json {
		return json.NewEncoder(e.stdout).Encode(b)
	}
	_, err := fmt.Fprintf(e.stdout, "semel %s, %s, %s\n", b.Version, b.Go, b.Platform)
	return err
}
