package admin

import (
	"log"
	"log/slog"
	"strings"
)

// ErrorLog is the ErrorLog of an http.Server. A panic of a handler is logged as an error, and
// all other lines, such as failed handshakes of strangers, at debug level.
func ErrorLog(to *slog.Logger) *log.Logger { return log.New(serverLines{to}, "", 0) }

type serverLines struct{ log *slog.Logger }

// Write implements io.Writer. Package log calls it once for each line of the server, which
// after a panic has several lines of text.
func (s serverLines) Write(text []byte) (int, error) {
	line := strings.TrimSpace(string(text))
	_, rest, ok := strings.Cut(line, ": panic serving ")
	if protocol := line[:max(0, strings.IndexByte(line, ':'))]; ok && (protocol == "http" || protocol == "http2") {
		client, panicked, _ := strings.Cut(rest, ": ")
		s.log.Error("the handler of a request panicked", "client", client, "panic", panicked)
	} else {
		s.log.Debug(line)
	}
	return len(text), nil
}
