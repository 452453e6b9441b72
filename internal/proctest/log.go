package proctest

import (
	"bytes"
	"strings"
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

// Own is what was written, without the lines of the Redis client about its connections. That
// client has one logger for the process, so the clients of other tests write here, too.
func (l *Log) Own() string {
	var own strings.Builder
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, "redis: connection pool: ") {
			own.WriteString(line)
		}
	}
	return own.String()
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
