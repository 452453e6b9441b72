//go:build !linux

package pgstore

import "testing"

func smallDisk(t *testing.T) (string, func()) {
	t.Helper()
	t.Skip("SKIPPED, NOT TESTED: no small file system here")
	return "", nil
}
