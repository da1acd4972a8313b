package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInterrupted says that a run was ended from outside, and has cleaned up. What was measured until then is the result.
var ErrInterrupted = errors.New("bench: interrupted")

var errSilent = errors.New("no answer for too long")

// The states of a run: it goes on until its work is done, ends early but lets requests finish, or breaks off.
const (
	running int32 = iota
	stopping
	failed
)

// run is one run of a workload.
type run struct {
	Config
	id      string // in the names of nodes that are this run's alone
	addrs   []netip.AddrPort
	data    []byte
	began   time.Time // where the run's clock starts
	state   atomic.Int32
	threads []*thread
	made    []string // nodes, those above others first
	// perWrite is how many requests are put together for one write.
	perWrite int

	// from and until bound the measurement, on the run's clock; ended is when its last request was answered.
	from, until, ended int64
	finished           atomic.Int64 // operations, where they are counted one by one
	usage              *sampler
	fanout             *fanout
	queue              *queue
	rounds             *rounds
}

// Run prepares the servers, loads them, and cleans up. If the context ends, so does the load, and the result is that of
// the time until then. The result is never nil when the configuration is valid: beside an error it holds what is known.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.SilenceMax = cmp.Or(c.SilenceMax, silenceMaxDefault)
	c.Duration = cmp.Or(c.Duration, never)
	c.progressPeriod = cmp.Or(c.progressPeriod, time.Second)
	c.Threads = min(c.Threads, c.Sessions)
	r := &run{Config: c, began: time.Now(), data: randomData(c.DataBytes, c.Seed)}
	r.id = strconv.FormatInt(r.began.UnixMilli(), 36) + "-" + strconv.Itoa(os.Getpid())
	r.perWrite = max(1, writeBytesMax/(r.Ops*(r.DataBytes+len(r.Root)+requestBytes)))
	err := r.processes()
	if err == nil {
		err = r.resolve(ctx)
	}
	if err == nil {
		err = r.all(ctx)
	}
	return r.result(), err
}

// processes looks whether the usage of the servers can be read.
func (r *run) processes() error {
	for _, pid := range r.PIDs {
		if _, err := readProcess(pid); err != nil {
			return fmt.Errorf("--pid %d: %w", pid, err)
		}
	}
	return nil
}

// resolve looks up the addresses of the servers.
func (r *run) resolve(ctx context.Context) error {
	for _, server := range r.Servers {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			return err
		}
		if host == "" {
			host = "localhost"
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return err
		}
		n, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
		if err != nil {
			return err
		}
		ip := ips[0].Unmap()
		for _, other := range ips { // a server that listens on one of them usually listens on that of version 4
			if other.Unmap().Is4() {
				ip = other.Unmap()
				break
			}
		}
		r.addrs = append(r.addrs, netip.AddrPortFrom(ip, uint16(n)))
	}
	return nil
}

// all is the whole of a run.
func (r *run) all(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		left := r.tidyBriefly()
		if ctx.Err() != nil {
			return cmp.Or(left, ErrInterrupted)
		}
		return errors.Join(err, left)
	}
	defer r.closeThreads()
	if err := r.makeThreads(); err != nil {
		return errors.Join(err, r.tidyBriefly())
	}
	release := context.AfterFunc(ctx, r.stop)
	defer release()
	err := r.load()
	if err != nil {
		r.parallel(func(t *thread) error {
			for _, s := range t.sessions {
				t.drop(s)
			}
			return nil
		})
		return errors.Join(err, r.tidyBriefly())
	}
	if err := r.parallel(func(t *thread) error { return t.finish() }); err != nil {
		return errors.Join(fmt.Errorf("closing the sessions: %w", err), r.tidyBriefly())
	}
	// Who ends a run has to hear of nodes that stay: that counts for more than the interruption, which he knows of.
	err = r.tidy(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return cmp.Or(err, ErrInterrupted)
	}
	return err
}

// tidyBriefly cleans up after a failure, which the server may not be able to take part in.
func (r *run) tidyBriefly() error {
	ctx, cancel := context.WithTimeout(context.Background(), tidyMax)
	defer cancel()
	return r.tidy(ctx)
}

func (r *run) makeThreads() error {
	for i := range r.Threads {
		t, err := newThread(r, i)
		if err != nil {
			return err
		}
		t.recorder = newRecorder(r.Timeline)
		r.threads = append(r.threads, t)
	}
	for i := range r.Sessions {
		t := r.threads[i%len(r.threads)]
		t.sessions = append(t.sessions, newSession(i, &r.Config))
	}
	if r.Workload == Watch { // the one that writes
		r.threads[0].sessions = append(r.threads[0].sessions, newSession(r.Sessions, &r.Config))
	}
	return nil
}

func (r *run) closeThreads() {
	for _, t := range r.threads {
		t.poll.close()
	}
}

// parallel runs f on each thread and returns when all are done.
func (r *run) parallel(f func(t *thread) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(r.threads))
	for i, t := range r.threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			errs[i] = f(t)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others follow from it, or tell the same
		}
	}
	return nil
}

// clock is the time since the run began, in nanoseconds.
func (r *run) clock() int64 { return int64(time.Since(r.began)) }

// stop ends the load early. What is outstanding is still waited for.
func (r *run) stop() {
	r.state.CompareAndSwap(running, stopping)
	r.wake()
}

// fail breaks off.
func (r *run) fail() {
	r.state.Store(failed)
	r.wake()
}

func (r *run) wake() {
	for _, t := range r.threads {
		t.poll.wake()
	}
}

func (r *run) stopping() bool { return r.state.Load() != running }
func (r *run) failed() bool   { return r.state.Load() == failed }

// finish ends the sessions of a thread.
func (t *thread) finish() error { return t.do(&closer{base: base{t}}) }
