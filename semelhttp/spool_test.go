package semelhttp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
)

func TestSpool_AnySize_HashesAndRepeats(t *testing.T) {
	for _, size := range []int{0, 1, 512, 513, 8193, spoolMemory, spoolMemory + 1, spoolMemory + 2, 3*spoolMemory + 5} {
		want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for name, from := range map[string]func() io.Reader{
			"plain":    func() io.Reader { return bytes.NewReader(want) },
			"half":     func() io.Reader { return iotest.HalfReader(bytes.NewReader(want)) },
			"data+EOF": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(want)) },
			"pieces": func() io.Reader {
				return io.MultiReader(bytes.NewReader(want[:size/3]), bytes.NewReader(want[size/3:]))
			},
		} {
			for _, declared := range []int64{-1, int64(size)} {
				var s spool
				h := sha256.New()
				if err := s.fill(from(), declared, 1<<20, t.TempDir(), h); err != nil {
					t.Fatal(size, name, err)
				}
				for range 2 {
					got, err := io.ReadAll(s.reader())
					if err != nil || !bytes.Equal(got, want) || s.size != int64(size) {
						t.Errorf("%d bytes, %s: got %d, %v", size, name, len(got), err)
					}
				}
				if sum := sha256.Sum256(want); !bytes.Equal(h.Sum(nil), sum[:]) {
					t.Errorf("%d bytes, %s: wrong hash", size, name)
				}
				if s.file == nil && size > spoolMemory+endByte || s.file != nil && size <= spoolMemory {
					t.Errorf("%d bytes, %s: in a file is %v", size, name, s.file != nil)
				}
				s.close()
			}
		}
	}
}

func TestSpool_EndlessBody_StopsAtLimit(t *testing.T) {
	for _, limit := range []int64{0, 10, spoolMemory, 2 * spoolMemory} {
		var s spool
		endless := &counter{}
		if err := s.fill(endless, -1, limit, t.TempDir(), io.Discard); !errors.Is(err, errTooLarge) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if most := limit + spoolMemory + 2; endless.n > most {
			t.Errorf("limit %d: read %d bytes", limit, endless.n)
		}
		s.close()
	}
}

type counter struct{ n int64 }

func (c *counter) Read(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func TestSpool_OpenFileNotRemovable_CloseRemovesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := spool{file: f, path: path} // like on a system that cannot remove an open file
	s.close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// io.Reader wants io.EOF itself at the end of a whole body.
func TestSpool_ReaderWrapsEOF_IsError(t *testing.T) {
	cut := fmt.Errorf("the stream was cut: %w", io.EOF)
	for _, size := range []int{0, 100, 2 * spoolMemory} {
		var s spool
		body := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(cut))
		if err := s.fill(body, -1, 1<<20, t.TempDir(), io.Discard); !errors.Is(err, cut) {
			t.Errorf("%d bytes and %q: the error is %v", size, cut, err)
		}
		s.close()
	}
}

func TestSpool_LengthWithoutBody_TakesLittleMemory(t *testing.T) {
	var s spool
	_ = s.fill(iotest.ErrReader(io.ErrUnexpectedEOF), spoolMemory, 1<<20, "", io.Discard)
	if cap(s.mem) > firstRead+endByte {
		t.Errorf("%d bytes were taken before any came", cap(s.mem))
	}
}

func TestExchange_End_ClosesSpool(t *testing.T) {
	e := &exchange{}
	if err := e.spool.fill(bytes.NewReader(make([]byte, 2*spoolMemory)), -1, 1<<20, t.TempDir(), io.Discard); err != nil {
		t.Fatal(err)
	}
	file := e.spool.file
	e.end()
	if _, err := file.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}
