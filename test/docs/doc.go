// Package docs tests the Markdown pages of this repository: code blocks are in source
// files, console blocks print what the page shows, links have targets, command lines name
// existing commands, each guarantee names existing tests, and each error and refusal of the
// code is explained. It makes a page of the options of the Go packages ("make docs"), and
// tests the site ("make site").
package docs
