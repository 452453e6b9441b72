//go:build !race

package pgstore

// histories is how many random histories the suite plays.
const histories = 1000
