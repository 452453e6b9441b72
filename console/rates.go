package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

var errNoRates = notFound("This console shows no rates: it was not told which processes to ask.")

// A chart is drawn in these units, and stretched to the width of the page.
const (
	chartWidth  = 600.0
	chartHeight = 100.0
)

// chart is the rate of one kind of calls over time.
type chart struct {
	Name, About  string
	Now, Most    string // calls a minute
	Line, Ground string // points of an SVG polyline, and of the area below it
}

// about explains each chart.
var about = map[string]string{
	"Executions": "Calls whose work ran in this attempt, whatever came of it.",
	"Replays":    "Duplicates that got the kept answer.",
	"Conflicts":  "Duplicates that were refused: the first call still runs or is in doubt, or the payload differs.",
}

// rates draws the rates of calls.
func (c *Console) rates(context.Context, *http.Request) (any, error) {
	if c.options.Rates == nil {
		return nil, errNoRates
	}
	s := c.options.Rates.Snapshot()
	data := struct {
		Charts    []chart
		Silent    []string
		Processes int
		Span      string
	}{Silent: s.Silent, Processes: s.Processes}
	for _, series := range s.Series {
		data.Span = span(time.Duration(len(series.Points)) * s.Every)
		data.Charts = append(data.Charts, draw(series.Name, series.Points))
	}
	return data, nil
}

// draw makes the chart of at least one point.
func draw(name string, points []float64) chart {
	most := slices.Max(points)
	if len(points) == 1 {
		points = []float64{points[0], points[0]}
	}
	var line strings.Builder
	for i, v := range points {
		x, y := chartWidth*float64(i)/float64(len(points)-1), chartHeight
		if most > 0 {
			y -= chartHeight * v / most
		}
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	return chart{
		Name: name, About: about[name], Now: perMinute(points[len(points)-1]), Most: perMinute(most),
		Line: line.String(), Ground: fmt.Sprintf("0,%v %s%v,%v", chartHeight, line.String(), chartWidth, chartHeight),
	}
}

// perMinute is a rate in digits: whole from 10 on, and with one decimal below.
func perMinute(rate float64) string {
	if rate >= 10 || rate == 0 {
		return strconv.FormatFloat(rate, 'f', 0, 64)
	}
	return strconv.FormatFloat(rate, 'f', 1, 64)
}
