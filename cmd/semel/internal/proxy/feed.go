package proxy

import (
	"errors"
	"io"
	"sync"
	"time"
)

// A feed holds at most feedSize bytes. A forwarded request waits feedPatience at most, in
// all, until its twin reads them.
const (
	feedSize     = 64 << 10
	feedPatience = 50 * time.Millisecond
)

// errFeedCut ends the body of a twin whose request was not read to its end.
var errFeedCut = errors.New("the forwarded body was not read to its end")

// feed gives a twin the bytes of a body while they are forwarded. If the twin does not
// read, the feed is cut, and the body is forwarded without it.
type feed struct {
	body   io.ReadCloser // the client's
	length int64         // of the body; -1: not known

	mu       sync.Mutex
	changed  *sync.Cond
	held     []byte
	read     int64 // from the client
	end      error // the twin gets it after the bytes; nil: there are more
	closed   bool  // the twin reads no more
	patience time.Duration
}

func newFeed(body io.ReadCloser, length int64) *feed {
	f := &feed{body: body, length: length, patience: feedPatience}
	f.changed = sync.NewCond(&f.mu)
	return f
}

// Read reads from the client, as the service needs it, and keeps a copy that the twin reads.
func (f *feed) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	for rest := p[:n]; len(rest) > 0 && f.wants(); {
		part := rest[:min(len(rest), feedSize-len(f.held))]
		f.held, rest = append(f.held, part...), rest[len(part):]
		f.changed.Broadcast()
	}
	if f.read += int64(n); err == nil && f.read == f.length {
		f.finish(io.EOF) // the service may answer before it reads the end
	} else if err != nil {
		f.finish(err)
	}
	return n, err
}

// Close closes the client's body.
func (f *feed) Close() error { return f.body.Close() }

// wants waits until there is space for more bytes, and reports whether the twin still
// reads. The caller holds mu.
func (f *feed) wants() bool {
	if f.closed || f.end != nil {
		return false
	}
	if len(f.held) < feedSize {
		return true
	}
	start := time.Now()
	late := time.AfterFunc(f.patience, func() { f.cut() })
	for len(f.held) == feedSize && !f.closed && f.end == nil {
		f.changed.Wait()
	}
	late.Stop()
	f.patience -= time.Since(start)
	return !f.closed && f.end == nil
}

// cut ends the twin's body, unless it has ended.
func (f *feed) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finish(errFeedCut)
}

// finish keeps the first reason why the twin gets no more bytes. The caller holds mu.
func (f *feed) finish(end error) {
	if f.end == nil {
		f.end = end
		f.changed.Broadcast()
	}
}

// twinBody is the body of the twin.
type twinBody struct{ feed *feed }

// Read implements io.Reader.
func (b twinBody) Read(p []byte) (int, error) {
	f := b.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.held) == 0 && f.end == nil && !f.closed {
		f.changed.Wait()
	}
	n := copy(p, f.held)
	f.held = f.held[n:]
	f.changed.Broadcast()
	if n == 0 && len(p) > 0 {
		return 0, f.end
	}
	return n, nil
}

// Close implements io.Closer.
func (b twinBody) Close() error {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	b.feed.closed = true
	b.feed.changed.Broadcast()
	return nil
}
