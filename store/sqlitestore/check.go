package sqlitestore

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
)

// Check implements store.Checker. It reads the settings of a new connection of
// Atomic.Run, after Options.Pragmas, and the type of the file system (on Linux).
// Each unsafe setting, and each other name of the file, is an ErrUnsafe. It sets the file's journal mode to WAL, and
// changes nothing else.
func (s *Store) Check(ctx context.Context) error {
	return explain("check", s.check(ctx))
}

func (s *Store) check(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := s.identity.check(); err != nil {
		return err // a new connection would make an empty file
	}
	return s.onConn(ctx, s.opt.Pragmas, func(conn *sql.Conn) error {
		var journal string
		if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil {
			return err
		}
		var sync int
		if err := conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&sync); err != nil {
			return err
		}
		if _, err := schema(ctx, conn); err != nil {
			return err
		}
		return errors.Join(checkSettings(journal, sync, s.opt.Relaxed), s.checkFile())
	})
}

// SQLite's numbers for PRAGMA synchronous.
const (
	syncNormal = 1
	syncFull   = 2
)

func checkSettings(journal string, sync int, relaxed bool) error {
	need := syncFull
	if relaxed {
		need = syncNormal
	}
	var errs []error
	if journal != "wal" {
		errs = append(errs, fmt.Errorf("%w: journal_mode is %q and cannot be changed to \"wal\"; does the file system have shared memory?", ErrUnsafe, journal))
	}
	if sync < need {
		errs = append(errs, fmt.Errorf("%w: synchronous is %d, and must be at least %d", ErrUnsafe, sync, need))
	}
	return errors.Join(errs...)
}

// checkEncoding refuses a file whose texts are UTF-16: hashes are made of the bytes of texts, and
// keys that are no valid text would be changed.
func checkEncoding(ctx context.Context, conn *sql.Conn) error {
	var encoding string
	if err := conn.QueryRowContext(ctx, "PRAGMA encoding").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF-8" {
		return fmt.Errorf("%w: the encoding of the file is %s, and must be UTF-8; it cannot be changed, so use another file, or move the tables to a new one (sqlite3: .dump, without PRAGMA encoding)", ErrUnsafe, encoding)
	}
	return nil
}

func (s *Store) checkFile() error {
	if err := s.identity.checkNames(); err != nil {
		return err
	}
	if name := networkFileSystem(filepath.Dir(s.path)); name != "" {
		return fmt.Errorf("%w: %s is on %s, where WAL mode does not work; put the file on a local disk", ErrUnsafe, s.path, name)
	}
	return nil
}

// SQLite keeps a log and locks in files beside the database whose names it makes of
// the database's name. So a database with two names has two logs and two locks, and
// processes that use different names grant every key twice. And a process whose file
// was removed or replaced goes on with a file that no other process will ever see.

// fileSuffixes are appended to the database's name: the database itself, its log and the
// log's index.
var fileSuffixes = [...]string{"", "-wal", "-shm"}

// identity is what the names of an open store stood for when it was opened.
type identity struct {
	given       string // the path that Open got; it may be a symbolic link
	path        string // of the file itself
	files       [len(fileSuffixes)]fs.FileInfo
	readChecked atomic.Int64 // when a read has checked it, in Unix nanoseconds
}

// readInterval is how long a read relies on the check of another. A change relies on
// none.
const readInterval = 100 * time.Millisecond

// checkForRead is check, now and then.
func (id *identity) checkForRead() error {
	now := time.Now().UnixNano()
	if age := now - id.readChecked.Load(); age >= 0 && age < int64(readInterval) { // the clock may be set back
		return nil
	}
	err := id.check()
	if err == nil {
		id.readChecked.Store(now)
	}
	return err
}

// identify resolves symbolic links, so that the files beside the database do not
// depend on the name.
func identify(given string) (*identity, error) {
	path, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, err
	}
	return &identity{given: given, path: path}, nil
}

// checkNames refuses a file that has other names.
func (id *identity) checkNames() error {
	info, err := os.Stat(id.path)
	if err != nil {
		return err
	}
	if n := hardLinks(info); n > 1 {
		return fmt.Errorf("%w: %s has %d hard links, and each name would have its own locks; keep one name (find the others with: find / -xdev -inum …), or copy the file", ErrUnsafe, id.path, n)
	}
	if isMountPoint("/proc/self/mountinfo", id.path) {
		return fmt.Errorf("%w: %s is mounted by itself, so that the files beside it, %s-wal and -shm, are not shared with other names of it; mount its directory instead", ErrUnsafe, id.path, filepath.Base(id.path))
	}
	return nil
}

// remember takes the files of an open store for the right ones.
func (id *identity) remember() error {
	for i, suffix := range fileSuffixes {
		info, err := os.Stat(id.name(i))
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		id.files[i] = info
	}
	return nil
}

func (id *identity) name(i int) string {
	if i == 0 {
		return id.given
	}
	return id.path + fileSuffixes[i]
}

// check refuses changes and reads after a file was removed or replaced. It takes
// some microseconds.
func (id *identity) check() error {
	for i, was := range id.files {
		if was == nil {
			continue
		}
		info, err := os.Stat(id.name(i))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was removed while the store was open, so its records would be lost; put it back, or restart the process", ErrUnsafe, id.name(i))
		case err != nil:
			return err
		case !os.SameFile(info, was):
			return fmt.Errorf("%w: %s was replaced by another file while the store was open, and other processes use that one; restart the process", ErrUnsafe, id.name(i))
		}
	}
	return nil
}

// isMountPoint reports whether something is mounted at path itself, by the kernel's
// list of mounts. Systems without that list have no mounts of single files.
func isMountPoint(list, path string) bool {
	f, err := os.Open(list)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && unescape.Replace(fields[4]) == path {
			return true
		}
	}
	return false
}

// hardLinks is the number of names of a file; 1 if the system does not tell.
func hardLinks(info fs.FileInfo) uint64 {
	if st := reflect.Indirect(reflect.ValueOf(info.Sys())); st.Kind() == reflect.Struct {
		if n := st.FieldByName("Nlink"); n.IsValid() && n.CanUint() { // its size differs between systems
			return n.Uint()
		}
	}
	return 1
}
