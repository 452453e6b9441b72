package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Stat is a value over the rounds of a measurement: lower quartile, median, upper
// quartile. If it was measured once, the three are equal.
type Stat [3]float64

// once is the Stat of a value that was measured once.
func once(v float64) Stat { return Stat{round4(v), round4(v), round4(v)} }

// quartiles is the Stat of values; of none it is zero.
func quartiles(values []float64) (s Stat) {
	if len(values) == 0 {
		return s
	}
	v := slices.Sorted(slices.Values(values))
	for i := range s {
		s[i] = round4(v[(len(v)-1)*(i+1)/4])
	}
	s[1] = round4(v[len(v)/2])
	return s
}

// Median is the middle of the three.
func (s Stat) Median() float64 { return s[1] }

// round4 rounds to four digits.
func round4(v float64) float64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	return f
}

// Figure is the values of one contender in one setting. Group, Name, Kind and N
// together tell it from the other figures of its section.
type Figure struct {
	Group  string          `json:"group"`          // such as the store
	Name   string          `json:"name"`           // the contender
	Kind   string          `json:"kind,omitempty"` // such as "new calls"
	N      int             `json:"n,omitempty"`    // callers, records or shards
	Values map[string]Stat `json:"values"`
}

// header says where and when the figures of a section were measured.
type header struct {
	Machine string `json:"machine"`
	Go      string `json:"go"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Took    string `json:"took"`
	Rounds  int    `json:"rounds"`
	Each    string `json:"each"`   // how long a contender ran in each round
	Others  Stat   `json:"others"` // percent of the processors that other processes used before the rounds
	Steal   Stat   `json:"steal"`  // percent of the processors that the host took away meanwhile
}

// results are the figures of a section.
type results struct {
	header
	figures []Figure
}

// write writes the results to a file: a line of JSON for the header, and one for each
// figure.
func (r *results) write(file string) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	err := lines.Encode(r.header)
	for i := range r.figures {
		err = errors.Join(err, lines.Encode(r.figures[i]))
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// report is the results of all sections by name.
type report struct {
	sections map[string]*results
	missing  []string // figures that a page needs and that were not measured
}

// readReport reads the files of a folder. Sections without a file were not measured.
func readReport(folder string) (*report, error) {
	r := &report{sections: map[string]*results{}}
	for _, s := range sections {
		b, err := os.ReadFile(filepath.Join(folder, s.name+".jsonl"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		res := &results{}
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			if res.Date == "" {
				err = json.Unmarshal(lines.Bytes(), &res.header)
			} else {
				var f Figure
				err = json.Unmarshal(lines.Bytes(), &f)
				res.figures = append(res.figures, f)
			}
			if err != nil {
				return nil, fmt.Errorf("%s.jsonl: %q: %w", s.name, lines.Text(), err)
			}
		}
		r.sections[s.name] = res
	}
	return r, nil
}

// of finds figures of a section, in their order. Empty text and 0 match all.
func (r *report) of(section, group, name, kind string, n int) (found []Figure) {
	if res := r.sections[section]; res != nil {
		for _, f := range res.figures {
			if (group == "" || f.Group == group) && (name == "" || f.Name == name) && (kind == "" || f.Kind == kind) && (n == 0 || f.N == n) {
				found = append(found, f)
			}
		}
	}
	return found
}

// stat is a value of the first figure that fits. If there is none, the report notes
// that it is missing.
func (r *report) stat(section, group, name, kind string, n int, value string) Stat {
	for _, f := range r.of(section, group, name, kind, n) {
		if s, ok := f.Values[value]; ok {
			return s
		}
	}
	r.missing = append(r.missing, fmt.Sprintf("%s: %s of %q, %q, %q, %d", section, value, group, name, kind, n))
	return Stat{}
}

// names are the different values that a field has, in order.
func names[T comparable](figures []Figure, field func(*Figure) T) (all []T) {
	for i := range figures {
		if v := field(&figures[i]); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}
