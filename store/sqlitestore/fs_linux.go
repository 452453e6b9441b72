package sqlitestore

import "syscall"

// networkFileSystem is the name of the network file system that dir is on, or
// "".
func networkFileSystem(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "" // opening the file will tell
	}
	return networkType(uint32(st.Type))
}

// networkType names the magic numbers of statfs(2) that stand for a network.
func networkType(magic uint32) string {
	switch magic {
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x01021997:
		return "9P"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x00c36400:
		return "Ceph"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x73757245:
		return "Coda"
	}
	return ""
}
