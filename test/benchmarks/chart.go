package main

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// panel is one diagram: lines over a few values of x, which are equally far apart.
type panel struct {
	title  string // with the unit of y
	x      string // the meaning of the ticks
	ticks  []string
	log    bool // y is logarithmic, and otherwise begins at 0
	series []series
}

// series is one line. A Stat that is zero is left out. The quartiles are drawn as a bar.
type series struct {
	name   string
	bold   bool
	values []Stat
}

// The sizes in pixels. Each panel has its labels to the right of its lines.
const (
	panelWidth, panelHeight              = 500, 250
	marginLeft, marginTop, marginRight   = 52, 44, 176
	plotWidth, plotHeight, labelDistance = panelWidth - marginLeft - marginRight, panelHeight - marginTop - 46, 15
)

// style has colours that people with colour blindness can tell apart (after Okabe and
// Ito), on a light and a dark page. Markers differ in shape, too.
const style = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}.t{font-weight:600}.h{font-size:15px;font-weight:600}.d{fill:#59636e;font-size:11px}
.bg{fill:#fff}.g{stroke:#d8dee4}.s0{--c:#0063a0}.s1{--c:#c44e00}.s2{--c:#00805f}.s3{--c:#a8508a}.s4{--c:#8a6d00}
.l{stroke:var(--c);fill:none;stroke-width:1.6}.b{stroke-width:3}.q{stroke:var(--c);stroke-width:1;opacity:.6}.m{fill:var(--c)}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.d{fill:#9198a1}.bg{fill:#0d1117}.g{stroke:#30363d}.s0{--c:#56b4e9}.s1{--c:#ff9154}.s2{--c:#2fc99b}.s3{--c:#e2a0c8}.s4{--c:#e6c229}}
</style>`

// chart is an SVG picture of panels, two in a row.
func chart(title string, panels ...panel) string {
	columns := min(2, len(panels))
	rows := (len(panels) + 1) / 2
	width, height := columns*panelWidth, rows*panelHeight+30
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>%s</title>`+"\n%s\n", width, height, width, height, html.EscapeString(title), style)
	fmt.Fprintf(b, `<rect class="bg" width="%d" height="%d" rx="6"/><text class="h" x="14" y="24">%s</text>`+"\n", width, height, html.EscapeString(title))
	for i := range panels {
		fmt.Fprintf(b, `<g transform="translate(%d %d)">`+"\n", i%2*panelWidth, 30+i/2*panelHeight)
		panels[i].draw(b)
		b.WriteString("</g>\n")
	}
	return b.String() + "</svg>\n"
}

func (p *panel) draw(b *strings.Builder) {
	low, high := p.bounds()
	y := func(v float64) float64 {
		share := (v - low) / (high - low)
		if p.log {
			share = math.Log(v/low) / math.Log(high/low)
		}
		return marginTop + plotHeight*(1-max(share, 0))
	}
	x := func(i int) float64 { return marginLeft + float64(plotWidth)*(float64(i)+.3)/(float64(len(p.ticks))-.4) }
	fmt.Fprintf(b, `<text class="t" x="14" y="26">%s</text>`+"\n", html.EscapeString(p.title))
	for _, v := range p.grid(low, high) {
		fmt.Fprintf(b, `<line class="g" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="d" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", marginLeft, marginLeft+plotWidth, y(v), y(v), marginLeft-6, y(v)+4, short(v))
	}
	for i, text := range p.ticks {
		fmt.Fprintf(b, `<text class="d" x="%.1f" y="%d" text-anchor="middle">%s</text>`, x(i), marginTop+plotHeight+16, text)
	}
	fmt.Fprintf(b, `<text class="d" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", marginLeft+plotWidth/2, marginTop+plotHeight+32, html.EscapeString(p.x))
	type label struct {
		series   int
		x, y, at float64 // the end of the line, and where the label is
	}
	var labels []label
	for n := len(p.series) - 1; n >= 0; n-- { // the first is on top
		s, points, end := &p.series[n], &strings.Builder{}, label{series: n}
		fmt.Fprintf(b, `<g class="s%d">`, n%5)
		marks := &strings.Builder{}
		for i, v := range s.values {
			if v.Median() == 0 {
				continue
			}
			end.x, end.y = x(i), y(v.Median())
			fmt.Fprintf(points, "%.1f,%.1f ", end.x, end.y)
			fmt.Fprintf(marks, `<line class="q" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>%s`, end.x, end.x, y(v[0]), y(v[2]), marker(n, end.x, end.y))
		}
		bold := ""
		if s.bold {
			bold = " b"
		}
		fmt.Fprintf(b, `<polyline class="l%s" points="%s"/>%s</g>`+"\n", bold, strings.TrimSpace(points.String()), marks)
		labels = append(labels, end)
	}
	slices.SortFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	next := math.Inf(-1)
	for i := range labels { // no two overlap
		labels[i].at = max(labels[i].y, next)
		next = labels[i].at + labelDistance
	}
	shift := max(0, next-labelDistance-(marginTop+plotHeight))
	for _, l := range labels {
		at := max(l.at-shift, marginTop-4)
		weight := ""
		if p.series[l.series].bold {
			weight = ` class="t"`
		}
		fmt.Fprintf(b, `<g class="s%d"><line class="q" x1="%.1f" x2="%d" y1="%.1f" y2="%.1f"/>%s</g><text%s x="%d" y="%.1f">%s</text>`+"\n",
			l.series%5, l.x, marginLeft+plotWidth+12, l.y, at, marker(l.series, marginLeft+plotWidth+14, at), weight, marginLeft+plotWidth+22, at+4, html.EscapeString(p.series[l.series].name))
	}
}

// marker is the shape of a series.
func marker(n int, x, y float64) string {
	switch n % 5 {
	case 0:
		return fmt.Sprintf(`<circle class="m" cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	case 1:
		return fmt.Sprintf(`<rect class="m" x="%.1f" y="%.1f" width="7" height="7"/>`, x-3.5, y-3.5)
	case 2:
		return fmt.Sprintf(`<path class="m" d="M%.1f %.1fl4.5 8h-9z"/>`, x, y-5)
	case 3:
		return fmt.Sprintf(`<path class="m" d="M%.1f %.1fl5 5l-5 5l-5-5z"/>`, x, y-5)
	}
	return fmt.Sprintf(`<path class="m" d="M%.1f %.1fl4.5-8h-9z"/>`, x, y+5)
}
