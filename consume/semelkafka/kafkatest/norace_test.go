//go:build !race

package kafkatest

// raceDetector reports whether the race detector is on.
const raceDetector = false
