// Package architecture tests the rules of the house that a compiler does not
// know: which package may import which, what each module may require, and what
// a file may look like. Each failure names file and line.
package architecture
