// Package journal is a file of lines, one JSON object each, that a process
// writes down what it does in, and that others may follow. What was written
// outlives the process, however it is killed.
package journal
