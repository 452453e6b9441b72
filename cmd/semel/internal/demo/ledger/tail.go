package ledger

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Tail follows the journal of a running ledger from outside. Not safe for
// concurrent use.
type Tail struct {
	State *State
	path  string
	lines lines
}

// NewTail follows the journal at path, which need not be there yet.
func NewTail(path string) *Tail { return &Tail{State: NewState(), path: path} }

// Update reads what is new.
func (t *Tail) Update() error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	// Only whole lines were taken before, and a ledger cuts off only what is
	// no whole line: so what was read is still there.
	t.lines = lines{read: t.lines.read}
	if _, err := f.Seek(t.lines.read, io.SeekStart); err != nil {
		return err
	}
	for {
		e, err := t.lines.next(f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.State.Apply(&e)
	}
}

// lines cuts a file into entries.
type lines struct {
	read int64 // the bytes of the whole lines that next has given
	buf  []byte
	done bool // the file has ended
}

// next is the next whole line, or io.EOF.
func (l *lines) next(r io.Reader) (Entry, error) {
	for {
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			e, err := parse(l.buf[:i])
			if err == nil {
				l.buf, l.read = l.buf[i+1:], l.read+int64(i)+1
			}
			return e, err
		}
		if l.done {
			return Entry{}, io.EOF
		}
		chunk := make([]byte, 64<<10)
		n, err := r.Read(chunk)
		l.buf = append(l.buf, chunk[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			l.done = true
		case err != nil:
			return Entry{}, err
		}
	}
}
