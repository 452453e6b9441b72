package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strings"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is the data of page.html. All coordinates are units of the charts'
// viewBox, which is 800 wide.
type page struct {
	*Report
	Title, Subtitle, Unit, LatencyText string
	Summary                            []string
	Charges                            barChart
	Kills                              killChart
	Latency                            latencyChart
	Rows                               []pageRow
}

type pageRow struct{ Label, Without, With string }

// label is a text and its place.
type label struct {
	X, Y, TextY float64
	Text        string
}

// bar is one bar of the charges, with the number of orders above it.
type bar struct {
	Class, Label, Tip   string
	X, Y, Width, Height float64
	LabelX, LabelY      float64
}

type barChart struct {
	Height, Base float64
	Bars         []bar
	Groups       []label
}

// dot is one kill.
type dot struct {
	Class, Tip string
	X, Y, R    float64
}

type killChart struct {
	Height float64
	Lanes  []label
	Dots   []dot
	Ticks  []label
}

// curve is the cumulative distribution of one part's latencies.
type curve struct{ Class, Points string }

type latencyChart struct {
	Height float64
	Rows   []label
	Curves []curve
	Ticks  []label
}

// part is one half of the demo in the charts.
type part struct {
	class, name string // class is a CSS class of page.html
	figures     *Figures
}

func (r *Report) parts() []part {
	return []part{{"without", "without Semel", &r.Without}, {"with", "with Semel", &r.With}}
}

// writeHTML writes the report as one page that needs no network.
func (r *Report) writeHTML(path string) error {
	p := &page{
		Report: r, Summary: r.summary(), Charges: r.chargeChart(), Kills: r.killChart(), Latency: r.latencyChart(),
		Title: "Semel demo: requests through semel proxy", Unit: "requests", LatencyText: "Time from a first request to its answer.",
	}
	if r.events {
		p.Title, p.Unit, p.LatencyText = "Semel demo: messages from a broker", "messages", "Time from the publication of a message to its ack."
	}
	p.Subtitle = fmt.Sprintf("%d orders, %d deliveries, seed %d. Without Semel: %.1f s, with Semel: %.1f s.", r.Orders, r.Deliveries, r.Seed, r.Without.Seconds, r.With.Seconds)
	for _, l := range r.rows() {
		if l != (row{}) {
			p.Rows = append(p.Rows, pageRow{l.label, l.without, l.with})
		}
	}
	var b strings.Builder
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("the HTML page: %w", err)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// mostGroups is how many groups of bars there are at most. The last holds all
// orders that were charged so often or more.
const mostGroups = 6

func (r *Report) chargeChart() barChart {
	const height, top, base = 250.0, 30.0, 210.0
	groups := min(mostGroups, max(3, len(r.Without.ChargesPerOrder), len(r.With.ChargesPerOrder)))
	c := barChart{Height: height, Base: base}
	wide := 760.0 / float64(groups)
	most := math.Sqrt(float64(max(1, r.Orders)))
	for g := range groups {
		text := fmt.Sprint(g, "×")
		if g == mostGroups-1 {
			text = fmt.Sprint(g, "× or more")
		}
		center := 20 + wide*(float64(g)+.5)
		c.Groups = append(c.Groups, label{X: round(center), Y: base + 20, Text: text})
		for i, part := range r.parts() {
			n := 0
			for times, orders := range part.figures.ChargesPerOrder {
				if min(times, groups-1) == g {
					n += orders
				}
			}
			b := bar{Class: part.class, Label: fmt.Sprint(n), Tip: fmt.Sprintf("%s: %d orders charged %s", part.name, n, text), Width: round(wide * .32)}
			b.Height = round((base - top) * math.Sqrt(float64(n)) / most)
			b.X, b.Y = round(center+wide*.34*float64(i-1)), round(base-b.Height)
			b.LabelX, b.LabelY = round(b.X+b.Width/2), round(b.Y-5)
			c.Bars = append(c.Bars, b)
		}
	}
	return c
}

func (r *Report) killChart() killChart {
	const lane, left, right = 42.0, 190.0, 770.0
	var c killChart
	seconds := max(1, r.Without.Seconds, r.With.Seconds)
	y := 0.0
	for _, part := range r.parts() {
		var names []string
		for _, k := range part.figures.Timeline {
			if !slices.Contains(names, k.Process) {
				names = append(names, k.Process)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			y += lane
			c.Lanes = append(c.Lanes, label{Y: y - lane/2, TextY: y - lane/2 + 4, Text: name + ", " + strings.TrimSuffix(part.name, " Semel")})
			for _, k := range part.figures.Timeline {
				if k.Process == name {
					c.Dots = append(c.Dots, dot{
						Class: part.class, X: round(left + (right-left)*k.Seconds/seconds), Y: y - lane/2, R: round(3 + math.Sqrt(float64(k.InFlight))*2),
						Tip: fmt.Sprintf("%s killed after %.1f s with %d in flight, %s", name, k.Seconds, k.InFlight, part.name),
					})
				}
			}
		}
	}
	for i := range 6 {
		c.Ticks = append(c.Ticks, label{X: round(left + (right-left)*float64(i)/5), Y: y + 20, Text: fmt.Sprintf("%.1f s", seconds*float64(i)/5)})
	}
	c.Height = y + 30
	return c
}

func (r *Report) latencyChart() latencyChart {
	const left, right, top, base = 60.0, 760.0, 15.0, 205.0
	c := latencyChart{Height: 240}
	most := max(1, r.Without.P99, r.With.P99)
	for _, percent := range []float64{0, 25, 50, 75, 100} {
		y := base - (base-top)*percent/100
		c.Rows = append(c.Rows, label{Y: round(y), TextY: round(y + 4), Text: fmt.Sprintf("%.0f %%", percent)})
	}
	for _, part := range r.parts() {
		var points strings.Builder
		fmt.Fprintf(&points, "%v,%v", left, base)
		all := part.figures.latencies
		share := 0.0
		for i, v := range all {
			if v > most {
				break
			}
			x := left + (right-left)*v/most
			fmt.Fprintf(&points, " %v,%v", round(x), round(base-(base-top)*share))
			share = float64(i+1) / float64(len(all))
			fmt.Fprintf(&points, " %v,%v", round(x), round(base-(base-top)*share))
		}
		if len(all) > 0 {
			fmt.Fprintf(&points, " %v,%v", right, round(base-(base-top)*share))
		}
		c.Curves = append(c.Curves, curve{part.class, points.String()})
	}
	for i := range 6 {
		c.Ticks = append(c.Ticks, label{X: round(left + (right-left)*float64(i)/5), Y: base + 20, Text: fmt.Sprintf("%.1f ms", most*float64(i)/5)})
	}
	return c
}

// round keeps one decimal place, so that the page stays small.
func round(v float64) float64 { return math.Round(v*10) / 10 }
