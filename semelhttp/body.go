package semelhttp

import (
	"io"
	"net/http"
	"sync"
)

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
