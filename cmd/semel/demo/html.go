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
	Title, Subtitle, Unit, LatencyText string
	BarsTitle, BarsText                string
	Broken                             bool
	Summary                            []string
	Bars                               barChart
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

// bar is one bar, with the number of orders above it.
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

// half is one half of a demo in the charts.
type half struct {
	class, name string // class is a CSS class of page.html
	course      *Course
}

func halvesOf(without, with *Course) []half {
	return []half{{"without", "without Semel", without}, {"with", "with Semel", with}}
}

// newPage is a page with the parts that all demos have.
func newPage(r report, halves []half, broken bool) *page {
	p := &page{Broken: broken, Summary: r.summary(), Kills: killChartOf(halves), Latency: latencyChartOf(halves)}
	for _, l := range r.rows() {
		if l != (row{}) {
			p.Rows = append(p.Rows, pageRow{l.label, l.without, l.with})
		}
	}
	return p
}

func (r *Report) page() *page {
	p := newPage(r, halvesOf(&r.Without.Course, &r.With.Course), len(r.Broken) > 0)
	p.Title, p.Unit, p.LatencyText = "Semel demo: requests through semel proxy", "requests", "Time from a first request to its answer."
	if r.events {
		p.Title, p.Unit, p.LatencyText = "Semel demo: messages from a broker", "messages", "Time from the publication of a message to its ack."
	}
	p.Subtitle = fmt.Sprintf("%d orders, %d deliveries, seed %d. Without Semel: %.1f s, with Semel: %.1f s.", r.Orders, r.Deliveries, r.Seed, r.Without.Seconds, r.With.Seconds)
	p.BarsTitle, p.BarsText = "Charges per order", "Number of orders by how often they were charged. Every order should be charged once."
	p.Bars = r.chargeChart()
	return p
}

// write writes the page, which needs no network.
func (p *page) write(path string) error {
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
	count := min(mostGroups, max(3, len(r.Without.ChargesPerOrder), len(r.With.ChargesPerOrder)))
	groups := make([]group, count)
	for g := range groups {
		groups[g].name = fmt.Sprint(g, "×")
		if g == mostGroups-1 {
			groups[g].name = fmt.Sprint(g, "× or more")
		}
		for i, figures := range []*Figures{&r.Without, &r.With} {
			for times, orders := range figures.ChargesPerOrder {
				if min(times, count-1) == g {
					groups[g].orders[i] += orders
				}
			}
		}
	}
	return barChartOf(groups, r.Orders, "orders charged")
}

// group is a group of bars: orders without and with Semel.
type group struct {
	name   string
	orders [2]int
}

// barChartOf draws two bars for each group: the orders without Semel, and the orders with
// it. A bar of full height stands for the given number of orders. The tip of a bar is its
// number, unit and the name of its group, such as "12 orders charged 2×".
func barChartOf(groups []group, orders int, unit string) barChart {
	const height, top, base = 250.0, 30.0, 210.0
	c := barChart{Height: height, Base: base}
	wide := 760.0 / float64(len(groups))
	most := math.Sqrt(float64(max(1, orders)))
	for g, group := range groups {
		center := 20 + wide*(float64(g)+.5)
		c.Groups = append(c.Groups, label{X: round(center), Y: base + 20, Text: group.name})
		for i, half := range halvesOf(nil, nil) {
			n := group.orders[i]
			b := bar{Class: half.class, Label: fmt.Sprint(n), Tip: fmt.Sprintf("%s: %d %s %s", half.name, n, unit, group.name), Width: round(wide * .32)}
			b.Height = round((base - top) * math.Sqrt(float64(n)) / most)
			b.X, b.Y = round(center+wide*.34*float64(i-1)), round(base-b.Height)
			b.LabelX, b.LabelY = round(b.X+b.Width/2), round(b.Y-5)
			c.Bars = append(c.Bars, b)
		}
	}
	return c
}

func killChartOf(halves []half) killChart {
	const lane, left, right = 42.0, 190.0, 770.0
	var c killChart
	seconds := 1.0
	for _, half := range halves {
		seconds = max(seconds, half.course.Seconds)
	}
	y := 0.0
	for _, half := range halves {
		var names []string
		for _, k := range half.course.Timeline {
			if !slices.Contains(names, k.Process) {
				names = append(names, k.Process)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			y += lane
			c.Lanes = append(c.Lanes, label{Y: y - lane/2, TextY: y - lane/2 + 4, Text: name + ", " + strings.TrimSuffix(half.name, " Semel")})
			for _, k := range half.course.Timeline {
				if k.Process == name {
					c.Dots = append(c.Dots, dot{
						Class: half.class, X: round(left + (right-left)*k.Seconds/seconds), Y: y - lane/2, R: round(3 + math.Sqrt(float64(k.InFlight))*2),
						Tip: fmt.Sprintf("%s killed after %.1f s with %d in flight, %s", name, k.Seconds, k.InFlight, half.name),
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

func latencyChartOf(halves []half) latencyChart {
	const left, right, top, base = 60.0, 760.0, 15.0, 205.0
	c := latencyChart{Height: 240}
	most := 1.0
	for _, half := range halves {
		most = max(most, half.course.P99)
	}
	for _, percent := range []float64{0, 25, 50, 75, 100} {
		y := base - (base-top)*percent/100
		c.Rows = append(c.Rows, label{Y: round(y), TextY: round(y + 4), Text: fmt.Sprintf("%.0f %%", percent)})
	}
	for _, half := range halves {
		var points strings.Builder
		fmt.Fprintf(&points, "%v,%v", left, base)
		all := half.course.latencies
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
		c.Curves = append(c.Curves, curve{half.class, points.String()})
	}
	for i := range 6 {
		c.Ticks = append(c.Ticks, label{X: round(left + (right-left)*float64(i)/5), Y: base + 20, Text: fmt.Sprintf("%.1f ms", most*float64(i)/5)})
	}
	return c
}

// round keeps one decimal place, so that the page stays small.
func round(v float64) float64 { return math.Round(v*10) / 10 }
