//go:build race

package sqlitestore

// histories is how many random histories the suite compares: SQLite, as Go
// code, is twenty times slower under the race detector.
const histories = 200
