package semelhttp

import (
	"net/http"
	"strings"
)

// headerLine is a header with its values.
type headerLine struct {
	name   string
	values []string
}

// isTrailer reports whether it is a trailer that was not announced.
func (l headerLine) isTrailer() bool { return strings.HasPrefix(l.name, http.TrailerPrefix) }

// snapshot is a header map as it was at one time. It copies no values: who
// changes a header later sets or appends, and does not write into the values.
type snapshot struct {
	lines []headerLine
}

// take uses room, if that is enough, instead of new memory.
func (s *snapshot) take(h http.Header, room []headerLine) {
	s.lines = room[:0]
	if len(h) == 0 {
		return
	}
	if n := len(h); n > cap(room) {
		s.lines = make([]headerLine, 0, n)
	}
	for name, values := range h {
		s.lines = append(s.lines, headerLine{name, values[:len(values):len(values)]})
	}
}

// is reports whether h still is as it was.
func (s *snapshot) is(h http.Header) bool {
	if len(h) != len(s.lines) {
		return false
	}
	for i := range s.lines {
		now, ok := h[s.lines[i].name]
		if was := s.lines[i].values; !ok || len(now) != len(was) || len(was) > 0 && &now[0] != &was[0] {
			return false
		}
	}
	return true
}

// restore makes h what it was.
func (s *snapshot) restore(h http.Header) {
	clear(h)
	for i := range s.lines {
		h[s.lines[i].name] = s.lines[i].values
	}
}

// values is those of a header.
func (s *snapshot) values(name string) []string {
	for i := range s.lines {
		if s.lines[i].name == name {
			return s.lines[i].values
		}
	}
	return nil
}
