//go:build !race

package sqlitestore

const histories = 1000
