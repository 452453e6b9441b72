package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Journal is a journal that is open for writing. One call writes one line, which
// survives a kill of the process. The journal does not call fsync, because the demo
// shows no power cut. Not safe for concurrent use.
type Journal[E any] struct {
	f   *os.File
	err error // the first failure; nothing is written after it
}

// Open opens the file at path, or makes it, and gives what it holds to apply,
// in order. A last line without its end was cut by a kill: it is removed, for
// it was not written.
func Open[E any](path string, apply func(*E)) (*Journal[E], error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	whole, err := replay(f, apply)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %s: %w", path, err), f.Close())
	}
	return &Journal[E]{f: f}, nil
}

// replay applies all whole lines, and tells how many bytes they are.
func replay[E any](r io.Reader, apply func(*E)) (whole int64, err error) {
	var l lines
	for {
		var e E
		err := next(&l, r, &e)
		if errors.Is(err, io.EOF) {
			return l.read, nil
		}
		if err != nil {
			return l.read, err
		}
		apply(&e)
	}
}

// Append writes a line. After an error, every later one is that error, too.
func (j *Journal[E]) Append(e *E) error {
	if j.err != nil {
		return j.err
	}
	line, err := encode(e)
	if err != nil {
		return err
	}
	if _, err = j.f.Write(line); err != nil {
		// Part of the line may be in the file. Open removes it.
		j.err = fmt.Errorf("journal: %w", err)
	}
	return j.err
}

// Close closes the file.
func (j *Journal[E]) Close() error { return j.f.Close() }

// encode is the entry as it is written, with the newline that makes it count.
func encode[E any](e *E) ([]byte, error) {
	b, err := json.Marshal(e)
	return append(b, '\n'), err
}

func decode[E any](line []byte, e *E) error {
	if err := json.Unmarshal(line, e); err != nil {
		return fmt.Errorf("journal: the line %q is none of a journal's: %w", line, err)
	}
	return nil
}
