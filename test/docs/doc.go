// Package docs tests the Markdown pages of this repository: Go blocks compile,
// links have targets, command lines name existing commands, and each guarantee
// names existing tests.
package docs
