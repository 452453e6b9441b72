package input

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Unreadable says why a file cannot be read, with the command that helps. create is the
// command that makes the file, if it is not there; empty if no command can make it.
func Unreadable(err error, create string) string {
	e, ok := errors.AsType[*fs.PathError](err)
	switch {
	case !ok:
		return "cannot be read: " + err.Error()
	case errors.Is(err, fs.ErrNotExist) && create != "":
		return "there is no such file; make it with: " + create
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file; see what is there with: ls -l " + filepath.Dir(e.Path)
	case errors.Is(err, fs.ErrPermission):
		return "must not be read by this user; see who may read it with: ls -l " + e.Path
	}
	return "cannot be read: " + e.Err.Error()
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
