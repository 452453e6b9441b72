package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Tail follows a journal that another process writes. Not safe for concurrent
// use.
type Tail[E any] struct {
	path  string
	apply func(*E)
	lines lines
}

// NewTail follows the journal at path, which need not be there yet, and gives
// each line to apply once.
func NewTail[E any](path string, apply func(*E)) *Tail[E] { return &Tail[E]{path: path, apply: apply} }

// Update reads what is new.
func (t *Tail[E]) Update() error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	// Only whole lines were taken before, and a writer cuts off only what is
	// no whole line: so what was read is still there.
	t.lines = lines{read: t.lines.read}
	if _, err := f.Seek(t.lines.read, io.SeekStart); err != nil {
		return err
	}
	for {
		var e E
		err := next(&t.lines, f, &e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.apply(&e)
	}
}

// lines cuts a file into entries.
type lines struct {
	read int64 // the bytes of the whole lines that next has given
	buf  []byte
	done bool // the file has ended
}

// next reads the next whole line, or gives io.EOF.
func next[E any](l *lines, r io.Reader, e *E) error {
	for {
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			err := decode(l.buf[:i], e)
			if err == nil {
				l.buf, l.read = l.buf[i+1:], l.read+int64(i)+1
			}
			return err
		}
		if l.done {
			return io.EOF
		}
		chunk := make([]byte, 64<<10)
		n, err := r.Read(chunk)
		l.buf = append(l.buf, chunk[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			l.done = true
		case err != nil:
			return err
		}
	}
}
