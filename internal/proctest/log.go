package proctest

import (
	"bytes"
	"sync"
)

// Log keeps what is written to it. Its zero value is empty. It is safe for concurrent use,
// so that a client may still write to it when the command that opened it has ended.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
