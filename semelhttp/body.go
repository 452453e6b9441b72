package semelhttp

import (
	"io"
	"net/http"
	"sync"
)

// body is what a handler reads: the spooled request from its start. It is
// closed when the handler returns, like the server's own.
type body struct {
	mu    sync.Mutex
	spool *spool    // nil: closed
	file  io.Reader // the reader of a spool with a file
	pos   int       // the next byte of a spool in memory
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spool == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.spool.file != nil {
		if b.file == nil {
			b.file = b.spool.reader()
		}
		return b.file.Read(p)
	}
	n := copy(p, b.spool.mem[b.pos:])
	if b.pos += n; n == 0 && len(p) > 0 || b.pos == len(b.spool.mem) {
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end()
	return nil
}

func (b *body) end() {
	b.mu.Lock()
	b.spool = nil
	b.mu.Unlock()
}
