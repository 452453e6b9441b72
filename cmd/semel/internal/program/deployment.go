package program

import (
	"net"
	"runtime/debug"
	"strings"
)

// Replicated returns the name of a variable that says that this process is one of
// several, or "".
func Replicated(getenv func(string) string) string {
	for _, name := range []string{"KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4", "NOMAD_ALLOC_ID", "FLY_ALLOC_ID", "K_SERVICE", "DYNO", "RENDER_INSTANCE_ID", "RAILWAY_REPLICA_ID"} {
		if getenv(name) != "" {
			return name
		}
	}
	return ""
}

// IsLocal reports whether only processes of this machine reach an address.
func IsLocal(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// memoryLimit is the size of the heap, in bytes, at which the garbage collector works
// harder. The heap can become larger; the limits of requests bound it.
const memoryLimit = 192 << 20

// gcPercent lets the heap grow to four times the memory in use between two
// collections, up to memoryLimit. With the default of 100 a sidecar with little in use
// collects every 4 MiB, which is a tenth of its processor time.
const gcPercent = 300

// LimitMemory sets memoryLimit and gcPercent, unless GOMEMLIMIT or GOGC is set.
func LimitMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
