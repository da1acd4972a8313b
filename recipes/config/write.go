package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// errConflict is a write that somebody else was ahead of. It was not carried out and never will be.
var errConflict = errors.New("config: somebody else was ahead")

// base is the version of a node that a write replaces; the zero value is a node that does not exist.
type base struct {
	exists bool
	stat   zk.Stat
	data   []byte
}

// look reads a node that others may have written just now. The sync makes it as new as when look was called.
func look(ctx context.Context, c *recipes.Client, path string) (base, error) {
	if err := c.Sync(ctx, path); err != nil {
		return base{}, err
	}
	data, stat, err := c.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return base{}, nil
	}
	if err != nil {
		return base{}, err
	}
	return base{true, *stat, data}, nil
}

// replaceNode writes data in place of a version, and returns the node after that. It fails with errConflict if the version
// is not the last one any more, or with recipes.ErrUnknown if it cannot be known what has become of the write.
//
// A write whose reply was lost may still be under way and happen later. It depends on the version that it replaces, so
// trying the same again is harmless: one of the two happens. It is recognised by its data: it makes the next version, and
// so does nothing else but a write of the same bytes, which is as good.
func replaceNode(ctx context.Context, c *recipes.Client, path string, old base, data []byte) (base, error) {
	for unsure := false; ; {
		made, err := tryReplace(ctx, c, path, old, data)
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, recipes.ErrUnknown) && ctx.Err() == nil && !errors.Is(err, recipes.ErrClosed):
			unsure = true
		case unsure && !old.exists && errors.Is(err, zk.ErrNoNode): // what was above it is gone, and it may be, too
			return base{}, fmt.Errorf("%w: %w", recipes.ErrUnknown, err)
		case !lostRace(err) || !old.exists && errors.Is(err, zk.ErrNoNode):
			return base{}, err
		case !unsure:
			return base{}, errConflict
		}
		now, lookErr := look(ctx, c, path)
		if lookErr != nil {
			return base{}, fmt.Errorf("%w: %w", recipes.ErrUnknown, lookErr)
		}
		if again, err := judge(old, now, data); !again {
			return now, err
		}
	}
}

func tryReplace(ctx context.Context, c *recipes.Client, path string, old base, data []byte) (base, error) {
	if old.exists {
		stat, err := c.Set(ctx, path, data, old.stat.Version)
		if err != nil {
			return base{}, err
		}
		return base{true, *stat, data}, nil
	}
	if _, err := c.Create(ctx, path, data, zk.FlagPersistent); err != nil {
		return base{}, err
	}
	return base{exists: true, data: data}, nil // Create tells no stat
}

// lostRace tells the answers to a write that came too late.
func lostRace(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode)
}

// judge tells what has become of a write from what is there now: nil for success, errConflict or recipes.ErrUnknown; or that
// the same write has to be tried again, because nothing has happened yet.
func judge(old, now base, data []byte) (again bool, err error) {
	var next int32 // the version that the write makes
	if old.exists {
		next = old.stat.Version + 1
	}
	same := old.exists && now.exists && old.stat.Czxid == now.stat.Czxid
	switch {
	case !old.exists && !now.exists || same && now.stat.Version == old.stat.Version:
		return true, nil
	case now.exists && (same || !old.exists) && now.stat.Version == next:
		if bytes.Equal(now.data, data) {
			return false, nil
		}
		return false, errConflict
	}
	return false, fmt.Errorf("%w: others have written since", recipes.ErrUnknown)
}

// Update replaces the value by what change makes of the present one, and returns the new version, which is in force here
// then. A node that does not exist is made, and change gets the zero value. If somebody else is ahead, change is called
// again with their value; it must not have effects of its own. Nothing is written if change fails, or if the new value
// is refused. A present value that is refused is not changed: it has to be mended first, by whoever knows what it means.
//
// With recipes.ErrUnknown the change may have been applied or not, and is not tried again: ctx ended while the reply was
// awaited, or the reply was lost and others have written since.
func (v *Value[T]) Update(ctx context.Context, change func(old T) (T, error)) (Version[T], error) {
	if v.cohort {
		return Version[T]{}, ErrCohort
	}
	for {
		r, err := v.update(ctx, change)
		if errors.Is(err, errConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return Version[T]{}, fmt.Errorf("config: updating %s: %w", v.path, err)
		}
		return v.took(r)
	}
}

func (v *Value[T]) update(ctx context.Context, change func(old T) (T, error)) (raw, error) {
	old, err := look(ctx, v.client, v.path)
	if err != nil {
		return raw{}, err
	}
	var value T
	if old.exists {
		if value, err = v.options.decode(v.path, old.data); err != nil {
			return raw{}, err
		}
	} else if err := ensureParent(ctx, v.client, v.path); err != nil {
		return raw{}, err
	}
	if value, err = change(value); err != nil {
		return raw{}, err
	}
	data, err := v.options.encode(v.path, value)
	if err != nil {
		return raw{}, err
	}
	made, err := replaceNode(ctx, v.client, v.path, old, data)
	if !old.exists && errors.Is(err, zk.ErrNoNode) && !errors.Is(err, recipes.ErrUnknown) {
		return raw{}, errConflict // the empty node above was cleaned up just then
	}
	if err != nil {
		return raw{}, err
	}
	if made.stat.Czxid == 0 {
		made = v.lookAtMade(ctx, data)
	}
	return raw{path: v.path, number: int64(made.stat.Version), data: data, stat: made.stat}, nil
}

// lookAtMade reads the stat of a node that was just made. If that fails, or if the node is gone again, it is not known: the
// write has happened all the same, and the watch will tell the rest.
func (v *Value[T]) lookAtMade(ctx context.Context, data []byte) base {
	made := base{exists: true, data: data}
	if stat, err := v.client.Exists(ctx, v.path); err == nil && stat != nil {
		made.stat = *stat
		// Others may have written since. Ours was the first version.
		made.stat.Version, made.stat.Mzxid, made.stat.Mtime = 0, stat.Czxid, stat.Ctime
	}
	return made
}

// took brings a version that was written here into force and returns it.
func (v *Value[T]) took(r raw) (Version[T], error) {
	version, err := v.version(r)
	if err != nil {
		return version, err
	}
	if r.stat.Mzxid > 0 { // otherwise the watch brings it into force
		v.keep(version, r)
	}
	return version, nil
}

// ensureParent makes what has to be there above a node.
func ensureParent(ctx context.Context, c *recipes.Client, path string) error {
	if dir := parent(path); dir != "/" {
		return c.EnsurePath(ctx, dir)
	}
	return nil
}
