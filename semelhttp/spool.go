package semelhttp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
)

const (
	// spoolMemory is how much of a body is held in memory.
	spoolMemory = 64 << 10
	// firstRead bounds what a client can make us allocate by declaring a
	// length alone.
	firstRead = 8 << 10
	// maxSlack is how much longer than the declared length a buffer is: room
	// to read the end of the body together with its last bytes.
	maxSlack = 1
)

// spool is a request body that was read to its end. The zero spool is empty.
type spool struct {
	mem  []byte   // the whole body, unless there is a file; from the start it may be room
	file *os.File // nil: in memory
	size int64
	path string            // of a file that could not be removed while it is open
	sum  [sha256.Size]byte // room for the hash
	lent bool              // mem was handed out
}

// errTooLarge is a body over the limit.
var errTooLarge = errors.New("the body is over the limit")

// errSpool is a failure of this machine, not of the client.
type errSpool struct{ error }

// fill reads body to its end, into memory and then into a file in dir, and
// hands it to h, a hash, on the way. It reads no more than limit allows and
// what fits its buffer. The caller must close the spool whatever it returns.
func (s *spool) fill(body io.Reader, declared, limit int64, dir string, h io.Writer) error {
	if declared > limit {
		return errTooLarge
	}
	if body == nil || body == http.NoBody {
		return nil
	}
	first := int64(512)
	if declared >= 0 {
		first = min(declared, firstRead)
	}
	if int64(cap(s.mem)) < first+maxSlack {
		s.mem = make([]byte, 0, first+maxSlack)
	}
	for {
		if len(s.mem) == cap(s.mem) {
			if len(s.mem) >= spoolMemory {
				return s.spill(body, limit, dir, h)
			}
			grown := make([]byte, len(s.mem), min(2*cap(s.mem), spoolMemory+maxSlack))
			copy(grown, s.mem)
			s.mem = grown
		}
		n, err := body.Read(s.mem[len(s.mem):cap(s.mem)])
		s.mem = s.mem[:len(s.mem)+n]
		if s.size = int64(len(s.mem)); s.size > limit {
			return errTooLarge
		}
		if errors.Is(err, io.EOF) {
			_, err = h.Write(s.mem)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// spill goes on in a file.
func (s *spool) spill(body io.Reader, limit int64, dir string, h io.Writer) error {
	f, err := os.CreateTemp(dir, "semelhttp-*")
	if err != nil {
		return errSpool{err}
	}
	s.file = f
	if os.Remove(f.Name()) != nil { // so that not even a crash leaves it; some systems cannot
		s.path = f.Name()
	}
	buf := s.mem // what was read already is the first to write, and then it is the buffer
	for {
		_, herr := h.Write(buf)
		_, werr := f.Write(buf)
		if err := errors.Join(herr, werr); err != nil {
			return errSpool{err}
		}
		if errors.Is(err, io.EOF) {
			s.mem = nil
			return nil
		}
		if err != nil {
			return err
		}
		var n int
		n, err = body.Read(s.mem[:cap(s.mem)])
		buf = s.mem[:n]
		if s.size += int64(n); s.size > limit {
			return errTooLarge
		}
	}
}

// reader reads the body from its start. Readers do not disturb each other.
func (s *spool) reader() io.Reader {
	if s.file != nil {
		return io.NewSectionReader(s.file, 0, s.size)
	}
	s.lent = true
	return bytes.NewReader(s.mem)
}

// again is the memory that another request may use.
func (s *spool) again() []byte {
	if s.lent || cap(s.mem) > firstRead+maxSlack {
		return nil
	}
	return s.mem[:0]
}

// close removes the file. Readers of it then fail.
func (s *spool) close() {
	if s.file == nil {
		return
	}
	_ = s.file.Close() // nothing is to be saved
	if s.path != "" {
		_ = os.Remove(s.path) // in the directory for temporary files, which somebody cleans
	}
}
