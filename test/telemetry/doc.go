// Package telemetry compares calls with and without traces and metrics.
package telemetry
