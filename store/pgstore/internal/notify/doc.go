// Package notify tells the processes that share a schema which runs have ended, by
// LISTEN and NOTIFY. A notification is a hint: it may be lost, so a caller that was
// woken reads the record, and a caller that waits polls from time to time.
package notify
