package sqlitestore

import "testing"

func TestNetworkType_NetworkFileSystem_IsNamed(t *testing.T) {
	t.Parallel()
	for magic, want := range map[uint32]string{0x6969: "NFS", 0xff534d42: "SMB", 0x01021997: "9P", 0xef53: "", 0x01021994: ""} {
		if got := networkType(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
	if name := networkFileSystem("/proc"); name != "" {
		t.Errorf("/proc is %q", name)
	}
}
