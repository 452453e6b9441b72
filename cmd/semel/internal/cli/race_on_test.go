//go:build race

package cli

// raceEnabled: the binary is built with the race detector, too.
const raceEnabled = true
