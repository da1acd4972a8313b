package config

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

// patience is how long a test waits for what has to come.
const patience = 60 * time.Second

// Numbers of the protocol's operations.
const (
	opCreate  = 1
	opGetData = 4
	opSetData = 5
)

// limits is the configuration of these tests.
type limits struct {
	Max  int
	Name string `json:",omitempty"`
}

var errNegative = errors.New("max is negative")

// checked is the options with a validation, and what was reported.
func checked() (Options[limits], *faults) {
	f := &faults{}
	return Options[limits]{OnFault: f.add, Validate: func(l limits) error {
		if l.Max < 0 {
			return errNegative
		}
		return nil
	}}, f
}

type faults struct {
	mu   sync.Mutex
	list []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, err)
}

func (f *faults) all() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error{}, f.list...)
}

type world struct {
	*recipestest.World
	t   testing.TB
	raw *zk.Conn
}

func newWorld(t testing.TB) *world {
	w := recipestest.Start(t)
	return &world{w, t, w.Raw(t)}
}

var open4all = zk.WorldACL(zk.PermAll)

// put writes a node, new or not, from outside.
func (w *world) put(path, data string) {
	w.t.Helper()
	_, err := w.raw.Set(w.Abs(path), []byte(data), -1)
	if errors.Is(err, zk.ErrNoNode) {
		_, err = w.raw.Create(w.Abs(path), []byte(data), 0, open4all)
	}
	require.NoError(w.t, err)
}

func (w *world) get(path string) (string, *zk.Stat) {
	w.t.Helper()
	data, stat, err := w.raw.Get(w.Abs(path))
	require.NoError(w.t, err)
	return string(data), stat
}

// eventually waits until a Value has this in force.
func eventually(t testing.TB, v *Value[limits], want limits) {
	t.Helper()
	recipestest.Eventually(t, func() bool { got, has := v.Get(); return has && got.Value == want }, "the value is in force")
}
