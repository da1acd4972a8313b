package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// What is sampled while profiles are taken: one blocking event per 10 microseconds waited, one contention in 10.
const (
	blockProfileNs    = 10_000
	mutexProfileShare = 10
)

// profiled runs f and leaves its profiles in a folder: cpu.pprof, and heap.pprof, allocs.pprof, mutex.pprof, block.pprof and
// goroutine.pprof as they stand at the end. An empty folder name takes none.
func profiled(dir string, f func() error) (err error) {
	if dir == "" {
		return f()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	runtime.SetBlockProfileRate(blockProfileNs)
	runtime.SetMutexProfileFraction(mutexProfileShare)
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return errors.Join(err, cpu.Close())
	}
	defer func() {
		pprof.StopCPUProfile()
		err = errors.Join(err, cpu.Close(), writeProfiles(dir))
	}()
	return f()
}

// writeProfiles writes those that count from the start of the process, or show its present state.
func writeProfiles(dir string) error {
	runtime.GC() // the heap profile is of the last collection
	for _, name := range []string{"heap", "allocs", "mutex", "block", "goroutine"} {
		file, err := os.Create(filepath.Join(dir, name+".pprof"))
		if err != nil {
			return err
		}
		if err := errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
