package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/cache"
)

// Version is a value that was in force at some time.
type Version[T any] struct {
	Value T
	// Path is the node that holds it.
	Path string
	// Number is the version of the node's data; in a Rollout it is the number that Publish gave.
	Number int64
	// Zxid is that of the write that brought it into force: of the value itself, or of the cohort's pointer. It grows with
	// each version.
	Zxid int64
	// Modified is the server's time of that write.
	Modified time.Time
	// FromFile tells that the ensemble has not confirmed it yet: it was read from the file.
	FromFile bool
	// AsOf is when this process learned it from the ensemble. For a version from the file, it is when it was learned last.
	AsOf time.Time
}

// Value is configuration that follows a node, or the pointer of a cohort. Its methods may be called from any goroutine.
type Value[T any] struct {
	client  *recipes.Client
	path    string
	options Options[T]
	resolve func(context.Context, cache.Entry) (raw, error)
	cohort  bool
	node    *cache.Node
	life    context.Context
	endLife context.CancelFunc
	done    chan struct{} // closed when nothing runs any more
	known   chan struct{} // closed when it is known what the ensemble has

	mu struct {
		sync.Mutex
		current Version[T]
		count   int // of the versions so far; current is none if it is 0
		changed chan struct{}
		fault   error
	}
	keeping   sync.Mutex // one write of the file at a time
	reporting sync.Mutex // one call of OnFault at a time
}

// raw is a version that nobody has looked into.
type raw struct {
	path   string
	number int64
	data   []byte
	stat   zk.Stat // of the node whose write brought it into force
}

// Open begins to follow the node at path. It returns as soon as it is known what the ensemble has, and that is in force; if
// the ensemble cannot be reached for Options.FileAfter, as soon as the file's version is in force. If neither comes before
// ctx ends, it fails with the reasons. It also fails if the node's value is refused and there is no good one in the
// file: there is nothing to go on with. A node that does not exist is no error: Get tells that there is no value.
func Open[T any](ctx context.Context, client *recipes.Client, path string, o Options[T]) (*Value[T], error) {
	direct := func(_ context.Context, e cache.Entry) (raw, error) {
		return raw{path: e.Path, number: int64(e.Stat.Version), data: e.Data(), stat: e.Stat}, nil
	}
	return open(ctx, &Value[T]{client: client, path: path, options: o, resolve: direct})
}

func open[T any](ctx context.Context, v *Value[T]) (*Value[T], error) {
	if err := checkPath(v.path); err != nil {
		return nil, err
	}
	if err := v.options.normalize(); err != nil {
		return nil, err
	}
	node, err := cache.NewNode(v.client, v.path, cache.Options{})
	if err != nil {
		return nil, err
	}
	v.node = node
	v.life, v.endLife = context.WithCancel(context.Background())
	v.done, v.known, v.mu.changed = make(chan struct{}), make(chan struct{}), make(chan struct{})
	stored, fileErr := v.load()
	if fileErr != nil {
		v.report(fileErr)
	}
	go v.follow(node.Events(v.life))
	if err := v.begin(ctx, stored, fileErr); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// begin waits for a version to go on with.
func (v *Value[T]) begin(ctx context.Context, stored *Version[T], fileErr error) error {
	timer := time.NewTimer(v.options.FileAfter)
	defer timer.Stop()
	fallback := timer.C
	if stored == nil {
		fallback = nil
	}
	select {
	case <-v.known:
		return v.beginKnowing(stored, fileErr)
	case <-fallback:
		v.putFirst(*stored)
		return nil
	case <-v.done:
		return ErrClosed
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("config: %s: the ensemble did not tell: %w", v.path, context.Cause(ctx)), fileErr)
	}
}

// beginKnowing goes on with what the ensemble has brought or, if that is nothing good, with the file.
func (v *Value[T]) beginKnowing(stored *Version[T], fileErr error) error {
	fault := v.Fault()
	switch {
	case v.has():
		return nil
	case stored != nil:
		if fault == nil {
			v.report(fmt.Errorf("%w: %s", ErrDeleted, v.path))
		}
		v.putFirst(*stored)
		return nil
	case fault == nil || fault == fileErr || errors.Is(fault, ErrDeleted): //nolint:errorlint // this very one
		return nil
	}
	return fault
}

// load returns the version in the file; nil if there is none.
func (v *Value[T]) load() (*Version[T], error) {
	if v.options.File == "" {
		return nil, nil
	}
	stored, err := Load(v.options.File, v.client.Path(v.path), v.options)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return stored, err
}

// follow takes in what happens to the node.
func (v *Value[T]) follow(events <-chan cache.Event) {
	defer close(v.done)
	for e := range events {
		switch e.Kind {
		case cache.Added, cache.Changed:
			r, err := v.resolve(v.life, e.Entry)
			if v.life.Err() != nil {
				return
			}
			if err == nil {
				err = v.offer(r)
			}
			// An Update of our own may have brought a later one into force.
			if current, _ := v.Get(); err != nil && (current.FromFile || e.Entry.Stat.Mzxid > current.Zxid) {
				v.report(err)
			}
		case cache.Removed:
			v.report(fmt.Errorf("%w: %s", ErrDeleted, v.path))
		case cache.Faulted, cache.Stopped:
			v.report(fmt.Errorf("config: %s: %w", v.path, e.Err))
		case cache.Initialized:
			close(v.known)
		case cache.Suspended, cache.Reconnected, cache.Lost: // the last good version stays, and Age tells
		}
	}
}

// offer brings a version into force if it is good, and keeps it in the file.
func (v *Value[T]) offer(r raw) error {
	version, err := v.version(r)
	if err == nil {
		v.keep(version, r)
	}
	return err
}

// version looks into one that was read or written just now.
func (v *Value[T]) version(r raw) (Version[T], error) {
	value, err := v.options.decode(r.path, r.data)
	return Version[T]{
		Value: value, Path: r.path, Number: r.number, Zxid: r.stat.Mzxid,
		Modified: time.UnixMilli(r.stat.Mtime), AsOf: time.Now(),
	}, err
}

// keep brings a version into force and writes the file, both under one lock, so that the file never goes back either.
func (v *Value[T]) keep(version Version[T], r raw) {
	v.keeping.Lock()
	defer v.keeping.Unlock()
	if !v.put(version) || v.options.File == "" {
		return
	}
	if err := save(v.options.File, v.client.Path(v.path), version.AsOf, r); err != nil {
		v.report(err)
	}
}

// put brings a version into force. It returns false if it or a later one is in force already. After the node was deleted,
// anything is later: an ensemble that was built anew counts from the start.
func (v *Value[T]) put(version Version[T]) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	current := &v.mu.current
	if v.mu.count > 0 && !current.FromFile && version.Zxid <= current.Zxid && !errors.Is(v.mu.fault, ErrDeleted) {
		return false
	}
	v.mu.fault = nil
	v.putLocked(version)
	return true
}

// putFirst brings a version from the file into force, unless the ensemble has brought a better one.
func (v *Value[T]) putFirst(version Version[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.count == 0 {
		v.putLocked(version)
	}
}

func (v *Value[T]) putLocked(version Version[T]) {
	v.mu.current = version
	v.mu.count++
	close(v.mu.changed)
	v.mu.changed = make(chan struct{})
}

// report keeps a fault.
func (v *Value[T]) report(err error) {
	v.reporting.Lock()
	defer v.reporting.Unlock()
	v.mu.Lock()
	v.mu.fault = err
	v.mu.Unlock()
	if v.options.OnFault != nil {
		v.options.OnFault(err)
	}
}

// Get returns the version in force, or false if there has never been one.
func (v *Value[T]) Get() (Version[T], bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.current, v.mu.count > 0
}

func (v *Value[T]) has() bool {
	_, has := v.Get()
	return has
}

// Fault returns why the newest version is not in force, or the last trouble with the file; nil if all is well.
func (v *Value[T]) Fault() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.fault
}

// Age returns how long ago it was known that the version in force is the newest: 0 while the connection stands and nothing
// is left to read. It returns false if there is no version. See package cache for what it cannot know.
func (v *Value[T]) Age() (time.Duration, bool) {
	current, has := v.Get()
	if !has {
		return 0, false
	}
	if current.FromFile {
		return max(time.Since(current.AsOf), 0), true
	}
	return v.node.Age()
}

// Versions returns the version in force and each later one, in order. It waits for them until ctx ends or the Value is
// closed. What comes into force while the loop's body runs is not queued: the last one is next.
func (v *Value[T]) Versions(ctx context.Context) iter.Seq[Version[T]] {
	return func(yield func(Version[T]) bool) {
		for seen := 0; ; {
			v.mu.Lock()
			current, count, changed := v.mu.current, v.mu.count, v.mu.changed
			v.mu.Unlock()
			if ctx.Err() != nil || count > seen && !yield(current) {
				return
			}
			if count > seen {
				seen = count
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-v.done:
				return
			}
		}
	}
}

// Close ends the following. The version in force stays readable.
func (v *Value[T]) Close() {
	v.endLife()
	v.node.Close()
	<-v.done
}
