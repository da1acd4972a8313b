package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/cache"
)

var (
	// ErrNoVersion is a version that was never published, or a cohort that points to none.
	ErrNoVersion = errors.New("config: no such version")
	// ErrMoved is a pointer that somebody else has moved in the meantime: nothing was done.
	ErrMoved = errors.New("config: somebody else has moved the cohort's pointer")
	// ErrNoPrevious is a Rollback with nothing to go back to.
	ErrNoPrevious = errors.New("config: the cohort has no previous version")
	// ErrAltered is a version whose node was written again. Versions never change, so it is not used.
	ErrAltered = errors.New("config: the version was altered after it was published")
)

// Rollout keeps versions that never change, and a pointer to one of them per cohort of readers, such as "canary" and "all".
// Below its root, versions/0000000007 holds the seventh version, and cohorts/canary the pointer. It has no state of its
// own: any number of processes may use the same root.
type Rollout[T any] struct {
	client  *recipes.Client
	root    string
	options Options[T]
}

// Pointer is where a cohort stands.
type Pointer struct {
	// Version is the number of the version that the cohort is to use.
	Version int64
	// Before are the versions that Rollback goes back to, the nearest first.
	Before []int64
	// Moved is the server's time of the last move.
	Moved time.Time

	stored pointer
	base   base
}

// pointer is the contents of a cohort's node.
type pointer struct {
	Version int64   `json:"version"`
	Before  []int64 `json:"before,omitempty"`
	// Move tells this move from others that lead to the same version.
	Move string `json:"move"`
}

// NewRollout uses the node at root, which need not exist.
func NewRollout[T any](client *recipes.Client, root string, o Options[T]) (*Rollout[T], error) {
	if err := checkPath(root); err != nil {
		return nil, err
	}
	if err := o.normalize(); err != nil {
		return nil, err
	}
	return &Rollout[T]{client, root, o}, nil
}

func (r *Rollout[T]) versions() string { return r.root + "/versions" }

func (r *Rollout[T]) versionPath(number int64) string {
	return fmt.Sprintf("%s/%010d", r.versions(), number)
}

func (r *Rollout[T]) cohortPath(cohort string) (string, error) {
	p := r.root + "/cohorts/" + cohort
	if cohort == "" || strings.Contains(cohort, "/") || p != path.Clean(p) {
		return "", fmt.Errorf("config: %w: a cohort cannot be called %q", recipes.ErrPath, cohort)
	}
	return p, nil
}

// Publish stores a value as a new version and returns its number. No cohort uses it before Promote. With
// recipes.ErrUnknown a version may have been stored that nobody points to.
func (r *Rollout[T]) Publish(ctx context.Context, value T) (int64, error) {
	data, err := r.options.encode(r.root, value)
	if err != nil {
		return 0, err
	}
	if err := r.client.EnsurePath(ctx, r.versions()); err != nil {
		return 0, fmt.Errorf("config: %w", err)
	}
	last, err := r.Published(ctx)
	if err != nil {
		return 0, err
	}
	for number := int64(1); ; {
		if len(last) > 0 {
			number = max(number, last[len(last)-1]+1)
		}
		_, err := replaceNode(ctx, r.client, r.versionPath(number), base{}, data)
		if err == nil {
			return number, nil
		}
		if !errors.Is(err, errConflict) {
			return 0, fmt.Errorf("config: publishing version %d of %s: %w", number, r.root, err)
		}
		number++
	}
}

// Published returns the numbers of all versions, from the first to the last.
func (r *Rollout[T]) Published(ctx context.Context) (numbers []int64, err error) {
	names, _, err := r.client.Children(ctx, r.versions())
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, fmt.Errorf("config: %w", err)
	}
	for _, name := range names {
		if number, err := strconv.ParseInt(name, 10, 64); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Read returns a version.
func (r *Rollout[T]) Read(ctx context.Context, number int64) (Version[T], error) {
	v, err := r.readVersion(ctx, number)
	if err != nil {
		return Version[T]{}, err
	}
	value, err := r.options.decode(v.path, v.data)
	return Version[T]{
		Value: value, Path: v.path, Number: number, Zxid: v.stat.Mzxid, Modified: time.UnixMilli(v.stat.Mtime), AsOf: time.Now(),
	}, err
}

func (r *Rollout[T]) readVersion(ctx context.Context, number int64) (raw, error) {
	p := r.versionPath(number)
	data, stat, err := r.client.Get(ctx, p)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return raw{}, fmt.Errorf("%w: %d of %s", ErrNoVersion, number, r.root)
	case err != nil:
		return raw{}, fmt.Errorf("config: %w", err)
	case stat.Version != 0:
		return raw{}, fmt.Errorf("%w: %s was written %d times since", ErrAltered, p, stat.Version)
	}
	return raw{p, number, data, *stat}, nil
}

// Cohort returns where a cohort stands. It fails with ErrNoVersion if it was never promoted.
func (r *Rollout[T]) Cohort(ctx context.Context, cohort string) (Pointer, error) {
	at, err := r.pointer(ctx, cohort)
	if err == nil && !at.base.exists {
		err = fmt.Errorf("%w: cohort %s of %s points to none", ErrNoVersion, cohort, r.root)
	}
	return at, err
}

func (r *Rollout[T]) pointer(ctx context.Context, cohort string) (Pointer, error) {
	p, err := r.cohortPath(cohort)
	if err != nil {
		return Pointer{}, err
	}
	b, err := look(ctx, r.client, p)
	if err != nil || !b.exists {
		return Pointer{}, err
	}
	stored, err := decodePointer(p, b.data)
	return Pointer{stored.Version, stored.Before, time.UnixMilli(b.stat.Mtime), stored, b}, err
}

func decodePointer(at string, data []byte) (p pointer, err error) {
	p, err = JSON[pointer]{}.Decode(data)
	if err == nil && p.Version <= 0 {
		err = fmt.Errorf("version %d", p.Version)
	}
	if err != nil {
		return p, fmt.Errorf("%w: pointer %s: %w", ErrRefused, at, err)
	}
	return p, nil
}

// Promote makes a cohort use a version, which must have been published. It fails with ErrMoved if somebody else moves the
// cohort at the same time. If the cohort uses the version already, nothing is done. With recipes.ErrUnknown it may have been
// moved or not.
func (r *Rollout[T]) Promote(ctx context.Context, cohort string, number int64) error {
	if _, err := r.Read(ctx, number); err != nil {
		return err // nobody is sent to a version that its readers would refuse
	}
	at, err := r.pointer(ctx, cohort)
	if err != nil || at.Version == number {
		return err
	}
	next := pointer{Version: number}
	if at.base.exists {
		next.Before = append([]int64{at.Version}, at.Before...)
		next.Before = next.Before[:min(len(next.Before), historyMax)]
	}
	return r.move(ctx, cohort, at.base, next)
}

// Rollback makes a cohort use the version that it used before, and returns its number. Going back once more leads to the
// version before that one, up to 16 versions in all. It fails as Promote does, and with ErrNoPrevious if there is none.
func (r *Rollout[T]) Rollback(ctx context.Context, cohort string) (int64, error) {
	at, err := r.Cohort(ctx, cohort)
	if err != nil {
		return 0, err
	}
	if len(at.Before) == 0 {
		return 0, fmt.Errorf("%w: cohort %s of %s", ErrNoPrevious, cohort, r.root)
	}
	next := pointer{Version: at.Before[0], Before: at.Before[1:]}
	if _, err := r.readVersion(ctx, next.Version); err != nil {
		return 0, err
	}
	return next.Version, r.move(ctx, cohort, at.base, next)
}

// move replaces a pointer by compare-and-set.
func (r *Rollout[T]) move(ctx context.Context, cohort string, old base, next pointer) error {
	p, err := r.cohortPath(cohort)
	if err != nil {
		return err
	}
	next.Move = newMove()
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if !old.exists {
		if err := ensureParent(ctx, r.client, p); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	_, err = replaceNode(ctx, r.client, p, old, data)
	switch {
	case errors.Is(err, errConflict):
		return fmt.Errorf("%w: %s of %s", ErrMoved, cohort, r.root)
	case err != nil:
		return fmt.Errorf("config: moving cohort %s of %s: %w", cohort, r.root, err)
	}
	return nil
}

// Follow begins to follow a cohort, as Open does a node: the version that its pointer names is in force. A cohort that was
// never promoted has no value.
func (r *Rollout[T]) Follow(ctx context.Context, cohort string) (*Value[T], error) {
	p, err := r.cohortPath(cohort)
	if err != nil {
		return nil, err
	}
	return open(ctx, &Value[T]{client: r.client, path: p, options: r.options, cohort: true, resolve: r.resolve})
}

// resolve reads what a pointer names. It does not give up while the ensemble cannot be reached.
func (r *Rollout[T]) resolve(ctx context.Context, e cache.Entry) (raw, error) {
	p, err := decodePointer(e.Path, e.Data())
	if err != nil {
		return raw{}, err
	}
	for synced := false; ; {
		v, err := r.readVersion(ctx, p.Version)
		// After a reconnect the server may be behind the one that had the pointer, which names nothing that never was.
		if errors.Is(err, ErrNoVersion) && !synced {
			if err = r.client.Sync(ctx, r.root); err == nil {
				synced = true
				continue
			}
		}
		if err == nil {
			v.stat = e.Stat // the pointer is what brings it into force
			return v, nil
		}
		if answered(err) {
			return raw{}, err
		}
		select {
		case <-ctx.Done():
			return raw{}, context.Cause(ctx)
		case <-time.After(retryWait):
		}
	}
}

// answered tells whether the server has refused, so that asking again would bring the same.
func answered(err error) bool {
	return errors.Is(err, ErrNoVersion) || errors.Is(err, ErrAltered) || errors.Is(err, zk.ErrNoAuth)
}
