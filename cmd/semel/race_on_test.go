//go:build race

package main

// raceEnabled: the binary is built with the race detector, too.
const raceEnabled = true
