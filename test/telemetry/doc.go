// Package telemetry compares calls with and without traces and metrics, and with and
// without encryption.
package telemetry
