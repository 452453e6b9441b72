package rates

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// groups are the charts, in their order.
var groups = [...]string{"Executions", "Replays", "Conflicts"}

// groupOf is the chart of each outcome; the others are in none.
var groupOf = map[string]int{
	"executed": 0, "failed": 0, "released": 0, "parked": 0, "unprotected": 0, "not_stored": 0, "lease_lost": 0,
	"replayed":            1,
	"refused_in_progress": 2, "refused_mismatch": 2, "refused_parked": 2,
}

// counts are calls by group.
type counts [len(groups)]float64

func (c *counts) add(d counts) {
	for i := range c {
		c[i] += d[i]
	}
}

func (c counts) times(f float64) counts {
	for i := range c {
		c[i] *= f
	}
	return c
}

// since is the increase from an earlier reading. A counter that is smaller than before
// has begun again at 0.
func (c counts) since(before counts) counts {
	for i := range c {
		if c[i] >= before[i] {
			c[i] -= before[i]
		}
	}
	return c
}

// parse sums semel_calls_total of all operations in the text format of Prometheus.
func parse(r io.Reader) (c counts, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	found := false
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), "semel_calls_total{")
		if !ok {
			continue
		}
		found = true
		_, rest, _ := strings.Cut(labels, `outcome="`)
		outcome, _, _ := strings.Cut(rest, `"`)
		group, known := groupOf[outcome]
		if !known {
			continue
		}
		// The value follows the last brace, and may have a time stamp after it.
		fields := strings.Fields(labels[strings.LastIndexByte(labels, '}')+1:])
		if len(fields) == 0 {
			return c, fmt.Errorf("semel_calls_total has no value in the line %q", lines.Text())
		}
		n, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return c, fmt.Errorf("semel_calls_total: %w", err)
		}
		c[group] += n
	}
	if err := lines.Err(); err != nil {
		return c, err
	}
	if !found {
		return c, fmt.Errorf("the answer has no semel_calls_total; is it the /metrics of semel proxy or semel deliver?")
	}
	return c, nil
}
