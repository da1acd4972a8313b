//go:build linux

package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Measures of a plot, in pixels.
const (
	plotWidth  = 760
	plotHeight = 400
	plotLeft   = 64
	plotRight  = 20
	plotTop    = 84
	plotBottom = 52
)

// chart is a plot of lines.
type chart struct {
	title, note  string
	xName, yName string
	logY         bool
	xMin, xMax   float64
	yMin, yMax   float64
	xTicks       []tick
	yTicks       []tick
	lines        []plotLine
	bands        []band
}

// tick is a labelled place on an axis.
type tick struct {
	at   float64
	text string
}

// plotLine is one contestant's line. Class is a or b, for Zabra and the reference server.
type plotLine struct {
	name, class string
	points      [][2]float64
	dots        bool
}

// band is a stretch of time that is shaded.
type band struct {
	class    string
	from, to float64
}

// The colours tell apart what is a and b for the colour-blind too, and the dashes do so on paper.
const plotStyle = `<style>
text{font:12px system-ui,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}
.note{fill:#59636e;font-size:11px}
.grid{stroke:#d1d9e0;stroke-width:1}
.axis{stroke:#59636e;stroke-width:1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.a{stroke:#0969da}.b{stroke:#bc4c00;stroke-dasharray:6 3}
.dot{stroke:none}.dot.a,.band.a{fill:#0969da}.dot.b,.band.b{fill:#bc4c00}
.band{stroke:none;opacity:.14}.band.mark{fill:#808890;opacity:.8}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.grid{stroke:#30363d}.axis{stroke:#9198a1}
.a{stroke:#58a6ff}.b{stroke:#f0883e}.dot.a,.band.a{fill:#58a6ff}.dot.b,.band.b{fill:#f0883e}}
</style>
`

// svg draws the chart.
func (c *chart) svg() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", escape(c.title), plotStyle)
	label(&b, plotLeft, 22, "start", "title", c.title)
	label(&b, plotWidth-plotRight, plotHeight-8, "end", "note", c.note)
	c.drawBands(&b)
	c.drawAxes(&b)
	for i, l := range c.lines {
		c.drawLine(&b, l)
		x := plotLeft + 200*i
		fmt.Fprintf(&b, `<line class="line %s" x1="%d" y1="42" x2="%d" y2="42"/>`+"\n", l.class, x, x+28)
		label(&b, float64(x+34), 46, "start", "", l.name)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (c *chart) x(v float64) float64 {
	return plotLeft + (clamp(v, c.xMin, c.xMax)-c.xMin)/(c.xMax-c.xMin)*(plotWidth-plotLeft-plotRight)
}

func (c *chart) y(v float64) float64 {
	low, high := c.yMin, c.yMax
	v = clamp(v, low, high)
	if c.logY {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return plotHeight - plotBottom - (v-low)/(high-low)*(plotHeight-plotTop-plotBottom)
}

func clamp(v, low, high float64) float64 { return max(low, min(high, v)) }

func (c *chart) drawAxes(b *strings.Builder) {
	const right, bottom = plotWidth - plotRight, plotHeight - plotBottom
	for _, t := range c.yTicks {
		y := c.y(t.at)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", plotLeft, y, right, y)
		label(b, plotLeft-8, y+4, "end", "", t.text)
	}
	for _, t := range c.xTicks {
		x := c.x(t.at)
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", x, bottom, x, bottom+5)
		label(b, x, bottom+19, "middle", "", t.text)
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", plotLeft, bottom, right, bottom)
	label(b, plotLeft, plotHeight-8, "start", "note", c.xName)
	label(b, plotLeft, plotTop-10, "start", "note", c.yName)
}

func (c *chart) drawBands(b *strings.Builder) {
	for _, s := range c.bands {
		from, to := c.x(s.from), c.x(s.to)
		fmt.Fprintf(b, `<rect class="band %s" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n",
			s.class, from, plotTop, max(to-from, 1), plotHeight-plotTop-plotBottom)
	}
}

func (c *chart) drawLine(b *strings.Builder, l plotLine) {
	if len(l.points) == 0 {
		return
	}
	fmt.Fprintf(b, `<polyline class="line %s" points="`, l.class)
	for i, p := range l.points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%.1f,%.1f", c.x(p[0]), c.y(p[1]))
	}
	b.WriteString("\"/>\n")
	if !l.dots {
		return
	}
	for _, p := range l.points {
		fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="3.5"/>`+"\n", l.class, c.x(p[0]), c.y(p[1]))
	}
}

func label(b *strings.Builder, x, y float64, anchor, class, words string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, escape(words))
}

func escape(words string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(words)) // a strings.Builder takes everything
	return b.String()
}

// fromZero sets a linear axis from 0 to a round number at or above the highest point. Points above most, if that is not 0, are
// drawn at the top.
func (c *chart) fromZero(most float64) {
	top := 0.0
	for _, l := range c.lines {
		for _, p := range l.points {
			top = max(top, p[1])
		}
	}
	if most > 0 {
		top = min(top, most)
	}
	step := roundStep(top / 5)
	c.yMin, c.yMax = 0, max(step, math.Ceil(top/step-1e-9)*step)
	for i := 0; float64(i)*step <= c.yMax*(1+1e-9); i++ {
		c.yTicks = append(c.yTicks, tick{float64(i) * step, fmt.Sprintf("%.4g", float64(i)*step)})
	}
}

// roundStep returns the least of 1, 2, 5 times a power of ten that is not less than v; 1 for nothing.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// decades sets a logarithmic axis of whole decades around all points.
func (c *chart) decades() {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range c.lines {
		for _, p := range l.points {
			if p[1] > 0 {
				low, high = min(low, p[1]), max(high, p[1])
			}
		}
	}
	if low > high {
		low, high = 1, 1
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	to = max(to, from+1)
	c.logY, c.yMin, c.yMax = true, math.Pow(10, from), math.Pow(10, to)
	for e := from; e <= to; e++ {
		v := math.Pow(10, e)
		c.yTicks = append(c.yTicks, tick{v, fmt.Sprintf("%g", v)})
	}
}

// seconds sets the horizontal axis to whole seconds.
func (c *chart) seconds(until float64) {
	c.xMin, c.xMax = 0, max(1, math.Ceil(until))
	for s := 0.0; s <= c.xMax; s++ {
		c.xTicks = append(c.xTicks, tick{s, fmt.Sprintf("%.0f", s)})
	}
}
