// Package architecture tests rules of this repository that the compiler does not
// check: the imports of each package, the dependencies of each module, and the
// size of packages, interfaces and files. Each failure names the file and line.
package architecture
