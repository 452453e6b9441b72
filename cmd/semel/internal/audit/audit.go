// Package audit writes the acts of operators to a file: a line of JSON before each act, and
// a line after it with its result.
package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/store"
)

// Act is what an operator has asked for. Fields without a meaning for an act are zero.
type Act struct {
	Act      string `json:"act"` // a word of package acts, such as "resolve"
	Via      string `json:"via"` // acts.ViaCommand or acts.ViaConsole
	Operator string `json:"operator"`
	Store    string `json:"store"` // its URL, without a password
	Record
	Fence    uint64         `json:"fence,omitempty"`    // of the record that the operator has seen
	Position int64          `json:"position,omitempty"` // of a message of an outbox
	Reason   string         `json:"reason"`
	Detail   map[string]any `json:"detail,omitempty"` // such as the verdict
	// Counts is for an erasure only: the act sets its fields, and the line of the result has
	// them. Nil: there are none.
	Counts *Counts `json:"-"`
}

// Counts says how many records an erasure has erased and left. If it broke off, the counts
// are of the time before.
type Counts struct {
	Erased       int `json:"erased"`
	ErasedByHash int `json:"erased_by_hash"` // the part of Erased that --hash-keys-file has found
	Left         int `json:"left"`
	// OtherPart is the part of Erased and Left whose records are stored under another name
	// than the Record of the act. Nil: there is none.
	OtherPart *Part `json:"other_part,omitempty"`
}

// Part is the part of an erasure whose records are stored under one name.
type Part struct {
	Stored string `json:"stored"` // "as given" or "as hashes"
	Record
	Erased int `json:"erased"`
	Left   int `json:"left"`
}

// Nothing reports whether there was nothing to erase and nothing to leave.
func (c *Counts) Nothing() bool { return c != nil && *c == Counts{} }

// Result says in words what the act, which ended with err, has done.
func (a *Act) Result(err error) string {
	if err == nil && a.Counts.Nothing() {
		return acts.NothingToErase
	}
	return acts.Result(err)
}

// Record names the records of an act. It has hashes, so that the trail does not keep the
// names that a later erasure removes from the store. Make it with RecordOf.
type Record struct {
	Operation    string `json:"operation,omitempty"`
	TenantSHA256 string `json:"tenant_sha256,omitempty"` // empty: all tenants share the key
	KeyHash      string `json:"key,omitempty"`           // as logs show it; empty: all keys
}

// RecordOf names a record, or the records of a tenant if k has no key.
func RecordOf(k store.Key) Record {
	r := Record{Operation: k.Operation}
	if k.Tenant != "" {
		sum := sha256.Sum256([]byte(k.Tenant))
		r.TenantSHA256 = hex.EncodeToString(sum[:])
	}
	if k.Value != "" {
		r.KeyHash = k.Short()
	}
	return r
}

// entry is a line of the file.
type entry struct {
	Time  time.Time `json:"time"`
	ID    string    `json:"id"`    // equal in the two lines of an act
	Event string    `json:"event"` // intent or result
	Act
	Result  string `json:"result,omitempty"` // a result of package acts
	*Counts        // nil, except for the result of an erasure
	Error   string `json:"error,omitempty"`
}

// Trail is an open file of acts. The nil Trail writes nothing. Safe for concurrent use;
// several processes may write to one file.
type Trail struct {
	path   string
	mu     sync.Mutex
	file   *os.File
	failed bool // the last write: a part of its line may be in the file
}

// Open opens the file at a path, or makes it, readable by its owner only. An empty path is
// no file: the Trail is nil.
func Open(path string) (*Trail, error) {
	if path == "" {
		return nil, nil
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return &Trail{path: path, file: f}, nil
}

func openFile(path string) (*os.File, error) {
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) { // operators may write, and not read
		f, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if isNew {
		if err := syncDir(filepath.Dir(path)); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// syncDir makes the name of a new file durable. Windows has no such request.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the file.
func (t *Trail) Close() error {
	if t == nil {
		return nil
	}
	return t.file.Close()
}

// ErrNotWritten says that the file could not be written.
var ErrNotWritten = errors.New("the audit trail cannot be written")

// Begin writes that an act is about to happen, and returns a function that writes its
// result. If Begin fails with ErrNotWritten, the act must not happen.
func (t *Trail) Begin(a Act) (end func(err error) error, err error) {
	if t == nil {
		return func(error) error { return nil }, nil
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	e := entry{Time: time.Now().UTC(), ID: hex.EncodeToString(id[:]), Event: "intent", Act: a}
	if err := t.write(&e); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", acts.ErrNothingChanged, ErrNotWritten, err)
	}
	return func(err error) error {
		e.Time, e.Event, e.Result, e.Counts = time.Now().UTC(), "result", a.Result(err), a.Counts
		if err != nil {
			e.Error = acts.Text(err)
		}
		if err := t.write(&e); err != nil {
			return fmt.Errorf("%w: the result of the act, which is %q, is missing there: %w", ErrNotWritten, e.Result, err)
		}
		return nil
	}, nil
}

// Do carries out an act between its two lines. The result is that of the act, also if its line
// cannot be written.
func (t *Trail) Do(a Act, fn func() error) (result string, err error) {
	end, err := t.Begin(a)
	if err != nil {
		return acts.NotDone, err
	}
	err = fn()
	return a.Result(err), errors.Join(err, end(err))
}

// write appends a line in one piece, and waits until it is on the disk. If the file ends with
// a part of a line, as after a full disk, an end of that line comes first, so that readers lose
// that part only.
func (t *Trail) write(e *entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.follow(); err != nil {
		return err
	}
	line = append(line, '\n')
	if t.failed || t.endsInLine() {
		line = append([]byte{'\n'}, line...)
	}
	_, err = t.file.Write(line)
	if t.failed = err != nil; t.failed {
		return err
	}
	return t.file.Sync()
}

// follow opens the file at the path again if the open file is not there any more. Another
// program has removed or renamed it, as logrotate does, and nobody would read the lines. The open
// file may then have no state, as on NFS after another host has removed it.
func (t *Trail) follow() error {
	opened, lost := t.file.Stat()
	at, err := os.Stat(t.path)
	switch {
	case err == nil && lost == nil && os.SameFile(opened, at):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := openFile(t.path)
	if err != nil {
		return err
	}
	_ = t.file.Close() // each line in it is on the disk
	t.file, t.failed = f, false
	return nil
}

// endsInLine reports whether the file ends with a part of a line. Another process may be
// writing one at this moment, so it looks several times. A file that cannot be read counts as
// whole.
func (t *Trail) endsInLine() bool {
	for range 5 {
		info, err := t.file.Stat()
		if err != nil || info.Size() == 0 {
			return false
		}
		var last [1]byte
		if _, err := t.file.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}
