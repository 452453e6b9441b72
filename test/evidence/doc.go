// Command evidence runs the long forms of the tests that count, and writes
// docs/evidence.md of what they report. It goes on after a failure, and then
// exits with 1. See package figure for how a test reports.
//
//	go run ./evidence -out ../docs/evidence.md
package main
