package semelhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
)

const (
	// spoolMemory is the largest body, in bytes, that stays in memory.
	spoolMemory = 64 << 10
	// firstRead is the size of the first buffer at most, in bytes, so that a
	// client cannot allocate more by declaring a length without sending a body.
	firstRead = 8 << 10
	// endByte makes a buffer one byte longer than the declared length, so that one
	// read finds the last bytes and the end together.
	endByte = 1
)

// spool is a request body that was read to its end. The zero spool is empty.
type spool struct {
	mem  []byte   // the whole body, unless there is a file
	file *os.File // nil: in memory
	size int64
	path string // of a file that the system cannot remove while it is open
}

var errTooLarge = errors.New("the body is over the limit")

// spoolError is a failure of this machine, not of the client.
type spoolError struct{ error }

// fill reads body to its end, into memory or, above spoolMemory, into a file in
// dir. It also writes the body to h, a hash. It reads at most one buffer more than
// limit. The caller has to close the spool, also after an error.
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
	s.mem = make([]byte, 0, first+endByte)
	for {
		if len(s.mem) == cap(s.mem) {
			if len(s.mem) >= spoolMemory {
				return s.spill(body, limit, dir, h)
			}
			grown := make([]byte, len(s.mem), min(2*cap(s.mem), spoolMemory+endByte))
			copy(grown, s.mem)
			s.mem = grown
		}
		n, err := body.Read(s.mem[len(s.mem):cap(s.mem)])
		s.mem = s.mem[:len(s.mem)+n]
		if s.size = int64(len(s.mem)); s.size > limit {
			return errTooLarge
		}
		if err == io.EOF { //nolint:errorlint // a reader that wraps it says that the body was cut
			_, err = h.Write(s.mem)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// spill moves the body to a file and reads the rest into it.
func (s *spool) spill(body io.Reader, limit int64, dir string, h io.Writer) error {
	f, err := os.CreateTemp(dir, "semelhttp-*")
	if err != nil {
		return spoolError{err}
	}
	s.file = f
	if os.Remove(f.Name()) != nil { // removed now, a crash does not leave it; some systems cannot do that
		s.path = f.Name()
	}
	buf := s.mem // the first part to write; afterwards its memory is the read buffer
	for {
		_, herr := h.Write(buf)
		_, werr := f.Write(buf)
		if err := errors.Join(herr, werr); err != nil {
			return spoolError{err}
		}
		if err == io.EOF { //nolint:errorlint // as in fill
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

// reader reads the body from its start. Each reader has its own position.
func (s *spool) reader() io.Reader {
	if s.file != nil {
		return io.NewSectionReader(s.file, 0, s.size)
	}
	return bytes.NewReader(s.mem)
}

// close removes the file. Readers of the file fail after that.
func (s *spool) close() {
	if s.file == nil {
		return
	}
	_ = s.file.Close() // its content is no longer needed
	if s.path != "" {
		_ = os.Remove(s.path) // the operating system cleans its directory for temporary files
	}
}

// requestBody is the body that a handler reads: the spooled one, from its start.
// It is closed when the handler returns, like the server's own body.
type requestBody struct {
	mu     sync.Mutex
	reader io.Reader // nil: closed
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.reader.Read(p)
}

// Close implements io.Closer.
func (b *requestBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reader = nil
	return nil
}
