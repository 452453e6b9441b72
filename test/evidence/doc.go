// Command evidence runs the long forms of the tests that report figures, and
// writes the figures to docs/evidence.md. If a step fails, it runs the other steps
// and then exits with 1. Package figure describes how a test reports.
//
//	go run ./evidence -out ../docs/evidence.md
//
// The whole takes hours. With -missing it goes on after an interruption, or runs what failed
// again, as long as the code stays the same.
package main
