//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"zabra/integration/harness"
)

// compareSettings are ZooKeeper's defaults where the harness has others for tests.
var (
	compareSettings = map[string]string{"tickTime": "2000", "maxSessionTimeout": "120000", "preAllocSize": "65536"}
	compareJVM      = []string{"-Xmx1000m"} // what zkServer.sh gives it
)

const bigHeap = "-Xmx4g"

// pingPeriod keeps the reference server awake, see harness.Pinger.
const pingPeriod = 100 * time.Millisecond

// contestant is a server program with its heap.
type contestant struct {
	name string // in the results
	kind harness.Kind
	jvm  []string
}

// contestants are Zabra and the reference server with each of its heaps, in the order in which they take turns.
func contestants(reference harness.Kind) (zabra, plain, big contestant) {
	return contestant{string(harness.Zabra), harness.Zabra, nil},
		contestant{string(reference), reference, compareJVM},
		contestant{string(reference) + bigHeap, reference, []string{bigHeap}}
}

// field is what a load is put on: servers that run, with a pinger beside them.
type field struct {
	addrs  []string
	pids   []int
	server *harness.Server   // of a standalone field
	peers  *harness.Ensemble // of an ensemble
	pinger *harness.Pinger
	dir    string
}

// startField starts servers in a fresh folder.
func startField(parent string, who contestant, servers int) (*field, error) {
	dir, err := freshFolder(parent, who)
	if err != nil {
		return nil, err
	}
	f := &field{dir: dir}
	if servers == 1 {
		err = f.startOne(who)
	} else {
		err = f.startEnsemble(who, servers)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	f.pinger = harness.StartPinger(f.addrs, pingPeriod)
	return f, nil
}

func freshFolder(parent string, who contestant) (string, error) {
	dir, err := os.MkdirTemp(parent, who.name+"-")
	if err != nil {
		return "", err
	}
	syscall.Sync() // what the one before has left to the disk is not to be paid by this one
	return filepath.Abs(dir)
}

func (f *field) startOne(who contestant) (err error) {
	if f.server, err = newServer(f.dir, who); err != nil {
		return err
	}
	if err := f.server.Start(); err != nil {
		return err
	}
	f.addrs, f.pids = []string{f.server.Addr()}, []int{f.server.PID()}
	return nil
}

func newServer(dir string, who contestant) (*harness.Server, error) {
	server, err := harness.New(who.kind, dir, compareSettings)
	if err != nil {
		return nil, err
	}
	server.JVM = who.jvm
	return server, nil
}

func (f *field) startEnsemble(who contestant, servers int) (err error) {
	f.peers, err = harness.NewEnsemble(f.dir, harness.Plan{Kind: who.kind, Servers: servers, JVM: who.jvm, Settings: compareSettings})
	if err != nil {
		return err
	}
	if err := f.peers.Start(); err != nil {
		return err
	}
	f.addrs = f.peers.Addrs()
	for _, m := range f.peers.Members {
		f.pids = append(f.pids, m.PID())
	}
	return nil
}

// close kills the servers and removes their data. There is nothing on it that anybody needs.
func (f *field) close() {
	if f == nil {
		return
	}
	if f.pinger != nil {
		f.pinger.Close()
	}
	if f.server != nil {
		f.server.Kill()
	}
	if f.peers != nil {
		f.peers.Close()
	}
	if err := os.RemoveAll(f.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}
