package pgstore

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// smallDisk is a file system of 6 MB for the server, half of it full, and a function
// that frees that half.
func smallDisk(t *testing.T) (dir string, free func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT TESTED: only root can mount a small file system")
	}
	mount, err := os.MkdirTemp("", "semel-small-") //nolint:usetesting // the server, another user, cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(mount) })
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(mount, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	for _, path := range []string{mount, dir} {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() {
		if err := os.Remove(ballast); err != nil {
			t.Error(err)
		}
	}
}
