package semelkafka

import "testing"

// Who keeps a value keeps those that were made with it: there are few of them,
// and their records are short.
func TestSomeAreFewAndShort(t *testing.T) {
	const n, many = 100, 1 << 20
	for name, c := range map[string]struct{ left, size, together int }{
		"short":                {many, 10, someValues},
		"long":                 {many, someBytes / 3, 3},
		"as long as can be":    {many, someBytes, 1},
		"too long":             {many, someBytes + 1, 1},
		"more than was wanted": {2, 10, 2},
	} {
		s, seen, together, most := some[int]{left: c.left}, map[*int]bool{}, 0, 0
		for range n {
			before := len(s.room)
			v := s.next(c.size)
			if seen[v] || *v != 0 {
				t.Fatalf("%s: a value is given twice, or is not empty", name)
			}
			*v, seen[v] = 1, true
			if together++; before == 0 || len(s.room) != before-1 { // the room is another
				together = 1
			}
			most = max(most, together)
		}
		if most != c.together {
			t.Errorf("%s: %d were made together, want %d", name, most, c.together)
		}
	}
}
