// Package docs tests the project's pages: each Go block is code that compiles
// here, each link leads somewhere, and each command line is one that the
// command knows.
package docs
