//go:build race

package kafkatest

// raceDetector reports whether the race detector is on, whose work counts as the
// process's.
const raceDetector = true
