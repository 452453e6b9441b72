package program

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion_BuildInfo_NamesVersionAndRevision(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	var b strings.Builder
	if err := buildOf(info).Write(&b, "semel"); err != nil || !strings.HasPrefix(b.String(), "semel v1.2.3, revision abc with changes, go1.") {
		t.Errorf("got %q, %v", b.String(), err)
	}
}
