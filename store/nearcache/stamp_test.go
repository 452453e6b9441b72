package nearcache

import (
	"testing"
	"time"
)

func TestSince_TwoClocks_LeastAndMost(t *testing.T) {
	b := stamp{mono: 100, wall: 1000}
	for name, c := range map[string]struct {
		now         stamp
		least, most time.Duration
	}{
		"both go on":                 {stamp{150, 1050}, 50, 50},
		"the machine slept":          {stamp{110, 9000}, 10, 8000},
		"the wall clock is set back": {stamp{150, 10}, 0, 50},
		"both go back":               {stamp{50, 900}, 0, -50},
	} {
		if least, most := c.now.since(b); least != c.least || most != c.most {
			t.Errorf("%s: %v and %v, want %v and %v", name, least, most, c.least, c.most)
		}
	}
}
