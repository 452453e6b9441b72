package encrypted

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// KeyFile is a file of keys. Each line has an ID, spaces, and a key of 32 bytes in
// base64. The first key encrypts; all decrypt. Blank lines and lines that begin with #
// are skipped. To make a line:
//
//	echo "$(date +%F-%H%M%S) $(openssl rand -base64 32)"
//
// Each use of a key reads the file again if a second has passed since the last read, or if
// the key is not known. A pipe is not read again. A file in which an ID has another key
// than this KeyFile has read under it cannot be used, because the results of the first key
// could then not be read. Make it with [ReadKeyFile]. Safe for concurrent use.
type KeyFile struct {
	path   string
	warn   func(error)
	reread func(ids, dropped []string)

	mu             sync.Mutex
	lastRead       time.Time
	failed         string   // the error of the last read; empty: none
	ids            []string // in the order of the file; the first encrypts
	keys           map[string][]byte
	keysSinceStart map[string][]byte // by their IDs, also those that the file has no more
}

var _ Keys = (*KeyFile)(nil)

// makeLine is the command that makes a line of a file of keys, with an ID that is new.
const makeLine = `echo "$(date +%F-%H%M%S) $(openssl rand -base64 32)"`

const (
	rereadInterval = time.Second
	maxKeyFile     = 64 << 10 // bytes
	maxKeyIDLen    = 64       // bytes, in a file
)

// ReadKeyFile reads a file of keys. Its error names the file, the line and what is wrong,
// and no part of the line. warn gets the error of a file that cannot be used any more, once
// until the error is another one; the last keys stay in use then. It must not block, nor
// use the KeyFile. Nil: the error is dropped.
func ReadKeyFile(path string, warn func(error)) (*KeyFile, error) {
	f := &KeyFile{path: path, warn: warn, lastRead: time.Now(), keysSinceStart: map[string][]byte{}}
	ids, keys, err := f.read()
	if err != nil {
		return nil, err
	}
	f.setKeys(ids, keys)
	return f, nil
}

// OnReread sets fn, which is called when the keys in use have changed, and when a file that
// could not be used can be used again. ids has the IDs in use, the encrypting one first;
// dropped has the IDs that are gone, whose results cannot be read any more. fn must not
// block, nor use the KeyFile. Nil, the default: nothing is called. Call OnReread before the
// first use of f.
func (f *KeyFile) OnReread(fn func(ids, dropped []string)) { f.reread = fn }

// Current implements Keys.
func (f *KeyFile) Current(context.Context) (id string, key []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.ids[0], f.keys[f.ids[0]], nil
}

// Key implements Keys.
func (f *KeyFile) Key(_ context.Context, id string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	key, ok := f.keys[id]
	if !ok { // another process may have got the key a moment before
		f.lastRead = time.Time{}
		f.refresh()
		key, ok = f.keys[id]
	}
	if !ok {
		return nil, fmt.Errorf("%w %q: it is not in %s; put its line there, below the first one", ErrUnknownKey, id, f.path)
	}
	return key, nil
}

// refresh reads the file again, at most once in rereadInterval. It compares the keys, because a
// new content can have the time and the size of the last one. The caller holds mu.
func (f *KeyFile) refresh() {
	now := time.Now()
	if now.Sub(f.lastRead) < rereadInterval {
		return
	}
	f.lastRead = now
	if info, err := os.Stat(f.path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
		return // a pipe can be read once only
	}
	ids, keys, err := f.read()
	if err != nil {
		if err.Error() != f.failed && f.warn != nil {
			f.warn(fmt.Errorf("%w; the last keys stay in use; mend the file before this process starts again, because a new process has no earlier keys to compare it with", err))
		}
		f.failed = err.Error()
		return
	}
	if f.failed == "" && slices.Equal(ids, f.ids) && maps.EqualFunc(keys, f.keys, bytes.Equal) {
		return
	}
	dropped := slices.DeleteFunc(slices.Clone(f.ids), func(id string) bool { return keys[id] != nil })
	f.setKeys(ids, keys)
	if f.reread != nil {
		f.reread(slices.Clone(ids), dropped)
	}
}

// setKeys replaces the keys.
func (f *KeyFile) setKeys(ids []string, keys map[string][]byte) {
	f.ids, f.keys, f.failed = ids, keys, ""
	maps.Copy(f.keysSinceStart, keys)
}

// read reads the file.
func (f *KeyFile) read() (ids []string, keys map[string][]byte, err error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("encrypted: the key file cannot be read: %w; if the store has encrypted records, copy the file of the processes that wrote them; only for a store without them, make it with: (umask 077; %s > %s)", err, makeLine, f.path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("encrypted: the key file cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("encrypted: the key file cannot be read: %w", err)
	}
	if len(content) > maxKeyFile {
		return nil, nil, fmt.Errorf("encrypted: %q: has more than %d bytes; is it a key file?", f.path, maxKeyFile)
	}
	keys = map[string][]byte{}
	lines := map[string]int{}
	n := 0
	for line := range bytes.Lines(content) {
		n++
		fields := bytes.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		bad := func(why string, args ...any) error { // never with a part of the line, which may be the key
			return fmt.Errorf("encrypted: %q: line %d: %s", f.path, n, fmt.Sprintf(why, args...))
		}
		const mend = "if the store has records that were encrypted with this key, copy the line of the processes that wrote them; otherwise make a line with: " + makeLine
		if len(fields) != 2 {
			return nil, nil, bad("must be two words, an ID and a key in base64; words in the line: %d; %s", len(fields), mend)
		}
		id := string(fields[0])
		key, err := base64.StdEncoding.DecodeString(string(fields[1]))
		switch {
		case err != nil:
			return nil, nil, bad("the second word is not base64; %s", mend)
		case len(key) != keyBytes:
			return nil, nil, bad("the key has %d bytes; it must have %d; %s", len(key), keyBytes, mend)
		case len(id) > maxKeyIDLen:
			return nil, nil, bad("the ID has %d bytes; at most %d are allowed; %s", len(id), maxKeyIDLen, mend)
		case lines[id] > 0:
			return nil, nil, bad("the ID is that of line %d; delete one of the two lines, if no process uses them yet; otherwise the one that the other processes do not have. A new key needs a new ID, such as from: %s", lines[id], makeLine)
		}
		if old, ok := f.keysSinceStart[id]; ok && !bytes.Equal(old, key) {
			return nil, nil, bad("the ID %q has another key than this process has used under it; put the line of the old key back, as the other processes have it. A new key needs a new ID, such as from: %s", id, makeLine)
		}
		ids = append(ids, id)
		keys[id], lines[id] = key, n
	}
	if len(ids) == 0 {
		return nil, nil, fmt.Errorf("encrypted: %q: has no key; if the store has encrypted records, copy the file of the processes that wrote them; only for a store without them, append a line with: %s >> %s", f.path, makeLine, f.path)
	}
	return ids, keys, nil
}
