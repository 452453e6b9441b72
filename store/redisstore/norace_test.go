//go:build !race

package redisstore

// histories is how many random histories the suite plays.
const histories = 1000
