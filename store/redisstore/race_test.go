//go:build race

package redisstore

// histories is fewer where the race detector slows each.
const histories = 200
