package discovery

import "time"

// DownPolicy says when an instance of which errors were noted is taken to be down.
type DownPolicy struct {
	// Errors is how many make it down, 2 if it is 0.
	Errors int
	// Window is for how long an error counts, from the first one on: when it is over, all errors of the instance are
	// forgotten and it is handed out again. 30 s if it is 0.
	Window time.Duration
}

// downs counts the errors of instances. It has no clock of its own.
type downs struct {
	DownPolicy
	errors map[incarnation]errorCount
}

// incarnation is an instance as it was registered: one that was registered again has no errors.
type incarnation struct {
	node  string
	czxid int64
}

type errorCount struct {
	since time.Time
	count int
}

func newDowns(p DownPolicy) *downs {
	if p.Errors <= 0 {
		p.Errors = downErrorsDefault
	}
	if p.Window <= 0 {
		p.Window = downWindowDefault
	}
	return &downs{p, map[incarnation]errorCount{}}
}

func (d *downs) note(i incarnation, now time.Time) {
	c, counted := d.errors[i]
	if !counted || now.Sub(c.since) >= d.Window {
		c = errorCount{since: now}
	}
	c.count++
	d.errors[i] = c
}

func (d *downs) down(i incarnation, now time.Time) bool {
	c, counted := d.errors[i]
	return counted && c.count >= d.Errors && now.Sub(c.since) < d.Window
}

// forget drops what is counted of a node, so that the counts do not outgrow the instances.
func (d *downs) forget(i incarnation) { delete(d.errors, i) }
