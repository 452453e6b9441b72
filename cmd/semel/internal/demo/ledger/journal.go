package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// journal is a file of lines. A line is written by one call, and what was
// written outlives the process, however it is killed; fsync would protect from
// a power cut as well, which nobody demonstrates.
type journal struct {
	f   *os.File
	err error // the first failure; nothing is written after it
}

// openJournal opens the file at path, or makes it, and gives what it holds. A
// last line without its end was cut by a kill: it is removed, for it was not
// written.
func openJournal(path string) (*journal, *State, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("ledger: %w", err)
	}
	s := NewState()
	whole, err := replay(f, s)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("ledger: %s: %w", path, err), f.Close())
	}
	return &journal{f: f}, s, nil
}

// replay applies all whole lines, and tells how many bytes they are.
func replay(r io.Reader, s *State) (whole int64, err error) {
	var l lines
	for {
		e, err := l.next(r)
		if errors.Is(err, io.EOF) {
			return l.read, nil
		}
		if err != nil {
			return l.read, err
		}
		s.Apply(&e)
	}
}

func (j *journal) append(e *Entry) error {
	if j.err != nil {
		return j.err
	}
	line, err := e.line()
	if err != nil {
		return err
	}
	if _, err = j.f.Write(line); err != nil {
		// Part of the line may be there. Whoever opens the file cuts it off.
		j.err = fmt.Errorf("ledger: %w", err)
	}
	return j.err
}

func (j *journal) close() error { return j.f.Close() }
