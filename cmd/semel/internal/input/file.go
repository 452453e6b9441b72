package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// Unreadable says why a file cannot be read, with the command that helps. If the file is
// not there, missing is what to do about it; empty if no command can make the file.
func Unreadable(err error, missing string) string {
	e, ok := errors.AsType[*fs.PathError](err)
	switch {
	case !ok:
		return "cannot be read: " + err.Error()
	case errors.Is(err, fs.ErrNotExist) && missing != "":
		return "there is no such file; " + missing
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file; see what is there with: ls -l " + filepath.Dir(e.Path)
	case errors.Is(err, fs.ErrPermission):
		return "must not be read by this user; see who may read it with: ls -l " + e.Path
	}
	return "cannot be read: " + e.Err.Error()
}

// CopyOr is what to do about secrets that are missing. The old ones come first: with new
// ones, a process cannot compare or read the records that the old ones wrote.
func CopyOr(part, records, otherwise string) string {
	return fmt.Sprintf("if the store has %s, copy the %s of the processes that wrote them; only for a store without them, %s", records, part, otherwise)
}

// UnreadableFile is an error about one of several files, with its name and the command
// that helps. Any other error is returned as it is.
func UnreadableFile(err error) error {
	e, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%s: %s", e.Path, Unreadable(err, ""))
}

// CheckRead returns an error if this process cannot read a file, with the command that helps.
func CheckRead(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return UnreadableFile(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if _, err = f.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		err = errors.New(path + ": is empty; copy the file of the processes that use it")
	}
	return UnreadableFile(err)
}

// CheckMode returns an error if users other than the owner can read a file, with the
// command that mends it. Empty: no file.
func CheckMode(path string) error {
	if path == "" || runtime.GOOS == "windows" {
		return nil
	}
	// The reader of the file reports that it is not there.
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o044 != 0 {
		mode := info.Mode().Perm()
		return fmt.Errorf("%s: has the mode %#o; mend it with: chmod 600 %s", path, mode, path)
	}
	return nil
}

// WarnMode logs a warning if users other than the owner can read one of the files.
func WarnMode(log *slog.Logger, paths ...string) {
	for _, path := range paths {
		if err := CheckMode(path); err != nil {
			log.Warn("a file with secrets is readable for others", "error", err)
		}
	}
}
