package verify

import (
	"fmt"
	"io"
	"os"
)

// Progress tells on a terminal, in one line that changes, which check is
// running. It is nil for anything else: there the report says it all.
func Progress(w io.Writer) func(name string) {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return progress(w)
}

func progress(w io.Writer) func(name string) {
	return func(name string) {
		text := name + "…"
		if name == "" {
			text = ""
		}
		_, _ = fmt.Fprint(w, "\r\x1b[K", text) // a terminal that has gone stops nothing
	}
}
