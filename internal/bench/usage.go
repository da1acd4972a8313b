package bench

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTicksPerSecond is USER_HZ, which Linux fixes at 100 for what it shows in /proc.
const clockTicksPerSecond = 100

// usage is what processes have used so far.
type usage struct {
	servers []processUsage // by the order of the pids
	own     time.Duration  // CPU time of this process
}

// sampler looks at the usage when the measurement begins and ends, and tells of the progress.
type sampler struct {
	run           *run
	over          chan struct{}
	done          chan struct{}
	before, after usage
}

func (r *run) sample() *sampler {
	u := &sampler{run: r, over: make(chan struct{}), done: make(chan struct{})}
	go u.watch()
	return u
}

// end waits for the last look.
func (u *sampler) end() {
	close(u.over)
	<-u.done
}

func (u *sampler) watch() {
	defer close(u.done)
	r := u.run
	if u.wait(r.from) {
		u.look(&u.before) // the measurement has not begun
	} else {
		u.look(&u.before)
		u.wait(r.until)
	}
	u.look(&u.after)
}

// wait waits for a time on the run's clock, or for the end of the load, and shows the progress meanwhile.
func (u *sampler) wait(until int64) (over bool) {
	r := u.run
	last := u.progress(Progress{})
	for {
		left := time.Duration(until - r.clock())
		if left <= 0 {
			return false
		}
		timer := time.NewTimer(min(left, r.progressPeriod))
		select {
		case <-u.over:
			timer.Stop()
			return true
		case <-timer.C:
		}
		if left > r.progressPeriod {
			last = u.progress(last)
		}
	}
}

// progress tells how far the run is.
func (u *sampler) progress(last Progress) Progress {
	r := u.run
	now := Progress{Seconds: seconds(r.clock() - r.from)}
	for _, t := range r.threads {
		now.Operations += t.recorder.shown.operations.Load()
		now.Errors += t.recorder.shown.errors.Load()
	}
	if r.Progress != nil && last != (Progress{}) {
		if passed := now.Seconds - last.Seconds; passed > 0 {
			now.PerSecond = float64(now.Operations-last.Operations) / passed
		}
		r.Progress(now)
	}
	return now
}

// into tells what was used between the two looks. A server that was there at the first only counts as it was then.
func (u *sampler) into(res *Result) {
	res.GeneratorCPUSeconds = (u.after.own - u.before.own).Seconds()
	if len(u.run.PIDs) == 0 {
		return
	}
	var rss int64
	var cpu time.Duration
	for i, after := range u.after.servers {
		cpu += max(0, after.cpu-u.before.servers[i].cpu)
		rss += after.rssBytes
	}
	res.Server = &Usage{CPUSeconds: cpu.Seconds(), RSSMiB: math.Round(float64(rss)/(1<<20)*10) / 10}
}

// look reads what the servers and this process have used.
func (u *sampler) look(at *usage) {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own) // it has no reason to fail
	at.own = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	for _, pid := range u.run.PIDs {
		p, _ := readProcess(pid) // one that has gone has stopped using anything
		at.servers = append(at.servers, p)
	}
}

// processUsage is what one process has used so far.
type processUsage struct {
	cpu      time.Duration
	rssBytes int64
}

// readProcess reads /proc.
func readProcess(pid int) (u processUsage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The name in parentheses may hold blanks. Behind it, utime, stime and rss are the 12th, 13th and 22nd field.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 22 {
		return u, fmt.Errorf("/proc/%d/stat has %d fields behind the name", pid, len(fields))
	}
	var values [3]int64
	for i, field := range []int{11, 12, 21} {
		if values[i], err = strconv.ParseInt(fields[field], 10, 64); err != nil {
			return u, err
		}
	}
	u.cpu = time.Duration(values[0]+values[1]) * (time.Second / clockTicksPerSecond)
	u.rssBytes = values[2] * int64(os.Getpagesize())
	return u, nil
}
