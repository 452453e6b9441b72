//go:build race

package pgstore

// histories is fewer where the race detector slows each.
const histories = 200
