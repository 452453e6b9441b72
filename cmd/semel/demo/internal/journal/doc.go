// Package journal keeps a file of lines, one JSON object each. A process writes
// its steps to the file, and other processes can follow it. A line that was
// written survives a kill of the process.
package journal
