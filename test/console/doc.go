// Package console uses the pages of package console in a real Chromium, as operators do:
// by mouse, by keyboard alone, on a phone and in dark mode. It also makes the pictures of
// the documentation:
//
//	SEMEL_SCREENSHOTS=1 go test ./console
package console
