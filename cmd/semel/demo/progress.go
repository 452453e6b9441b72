package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

// progress writes the line of now until ctx ends: on a terminal ten times a
// second over the same line, elsewhere a new line every five seconds.
func progress(ctx context.Context, w io.Writer, now func() string) {
	every, before, after := 5*time.Second, "", "\n"
	if isTerminal(w) {
		every, before, after = 100*time.Millisecond, "\r\x1b[K", ""
	}
	for pause(ctx, every) {
		_, _ = fmt.Fprint(w, before, now(), after)
	}
	_, _ = fmt.Fprint(w, before, now(), "\n")
}

// now is one line.
func (s *side) now() string {
	text := fmt.Sprintf("  %-14s %3d%%  requests %d", s.name, s.fleet.Steps.Load()*100/int64(max(1, len(s.plan.Steps))), s.fleet.Sent.Load())
	err := s.look(func(st *ledger.State) {
		text += fmt.Sprintf("  charges %d  double charges %d  kills %d", st.Charged, st.Double(), kills(s.targets()))
	})
	if err != nil {
		text += "  " + err.Error()
	}
	return text
}

func (s *side) proxyKills() int {
	if s.proxy == nil {
		return 0
	}
	return int(s.proxy.kills.Load())
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
