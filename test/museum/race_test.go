//go:build race

package museum

const raceEnabled = true
