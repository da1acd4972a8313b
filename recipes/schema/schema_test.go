package schema

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

var errEmpty = errors.New("there are none")

func notEmpty(_ string, data []byte) error {
	if len(data) == 0 {
		return errEmpty
	}
	return nil
}

func mustNew(t *testing.T, strict bool, rules ...Rule) *Schema {
	t.Helper()
	s, err := New(strict, rules...)
	require.NoError(t, err)
	return s
}

func TestWhichRule(t *testing.T) {
	s := mustNew(t, true,
		Rule{Name: "root", Path: "/"},
		Rule{Name: "tasks", Path: "/app/*/task-*"},
		Rule{Name: "one", Path: "/app/x/task-1"},
		Rule{Name: "any of app", Path: "/app/*/*"},
		Rule{Name: "below deep", Path: "/deep/**"},
		Rule{Name: "digits", Path: "/n[0-9]"},
	)
	for path, want := range map[string]string{
		"/":                      "root",
		"/app/x/task-1":          "one", // the exact one, though it comes later
		"/app/x/task-0000000001": "tasks",
		"/app/x/task-":           "tasks",
		"/app/x/other":           "any of app",
		"/app/x":                 "",
		"/app/x/task-1/below":    "",
		"/deep":                  "",
		"/deep/a":                "below deep",
		"/deep/a/b/c":            "below deep",
		"/n7":                    "digits",
		"/nx":                    "",
		"/app/x/_c_5c2a4ae0-0000-4000-8000-000000000000-task-3": "tasks",
		"/app/x/_c_task-3": "any of app",
	} {
		r, ok := s.Rule(path)
		require.Equal(t, want, r.Name, path)
		require.Equal(t, want != "", ok)
	}
	require.ErrorIs(t, s.CheckRead("/elsewhere", false), ErrNoRule)
	require.NoError(t, mustNew(t, false).CheckDelete("/elsewhere"))
}

func TestRulesThatCannotBe(t *testing.T) {
	good := Rule{Name: "good", Path: "/a"}
	for name, rules := range map[string][]Rule{
		"no name":            {{Path: "/a"}},
		"relative":           {{Name: "x", Path: "a"}},
		"no path":            {{Name: "x"}},
		"slash at the end":   {{Name: "x", Path: "/a/"}},
		"dots":               {{Name: "x", Path: "/a/../b"}},
		"** in the middle":   {{Name: "x", Path: "/a/**/b"}},
		"open bracket":       {{Name: "x", Path: "/a/[b"}},
		"unknown allowance":  {{Name: "x", Path: "/a", Watched: 7}},
		"negative allowance": {{Name: "x", Path: "/a", Ephemeral: -1}},
		"two of a name":      {good, {Name: "good", Path: "/b"}},
		"two of a path":      {good, {Name: "x", Path: "/a"}},
	} {
		_, err := New(false, rules...)
		require.Error(t, err, name)
	}
}

func TestAllowances(t *testing.T) {
	all := []struct {
		flags                 int32
		ephemeral, sequential bool
	}{
		{zk.FlagPersistent, false, false}, {zk.FlagEphemeral, true, false}, {zk.FlagSequence, false, true}, {zk.FlagEphemeralSequential, true, true},
		{zk.FlagContainer, false, false}, {zk.FlagTTL, false, false}, {zk.FlagPersistentSequentialWithTTL, false, true},
	}
	allowed := func(a Allowance, is bool) bool { return a == Can || is == (a == Must) }
	for _, a := range []Allowance{Can, Must, Cannot} {
		e := mustNew(t, false, Rule{Name: "e", Path: "/a", Ephemeral: a})
		s := mustNew(t, false, Rule{Name: "s", Path: "/a", Sequential: a})
		for _, c := range all {
			require.Equal(t, !allowed(a, c.ephemeral), errors.Is(e.CheckCreate("/a", nil, c.flags), ErrEphemeral))
			require.Equal(t, !allowed(a, c.sequential), errors.Is(s.CheckCreate("/a", nil, c.flags), ErrSequential))
		}
		r := mustNew(t, false, Rule{Name: "w", Path: "/a", Watched: a})
		for _, watched := range []bool{false, true} {
			require.Equal(t, !allowed(a, watched), errors.Is(r.CheckRead("/a", watched), ErrWatched))
		}
	}
}

func TestViolation(t *testing.T) {
	s := mustNew(t, false, Rule{Name: "settings", Path: "/a/*", Data: notEmpty, Keep: true})
	err := s.CheckSet("/a/b", nil)
	require.ErrorIs(t, err, ErrData)
	require.ErrorIs(t, err, errEmpty)
	var v *Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, "settings", v.Rule)
	require.Equal(t, `set /a/b: rule "settings": schema: the data are not allowed: there are none`, err.Error())
	require.Equal(t, `delete /a/b: rule "settings": schema: the node cannot be deleted`, s.CheckDelete("/a/b").Error())
	require.NoError(t, s.CheckSet("/a/b", []byte("x")))
	require.Equal(t, "read /x: schema: no rule is for this path", mustNew(t, true).CheckRead("/x", true).Error())
}

func TestDocumentation(t *testing.T) {
	s := mustNew(t, false,
		Rule{Name: "settings", Path: "/a", Doc: "what can be set", Data: notEmpty, Keep: true, Ephemeral: Cannot, Metadata: map[string]string{"owner": "us", "age": "3"}},
		Rule{Name: "rest", Path: "/**"})
	require.Equal(t, `settings
  path: /a
  doc: what can be set
  ephemeral: cannot, sequential: can, watched: can, deleted: cannot, data are checked
  age: 3
  owner: us

rest
  path: /**
  ephemeral: can, sequential: can, watched: can, deleted: can
`, s.String())
	require.Equal(t, "Allowance(9)", Allowance(9).String())
}

// The client refuses what the schema forbids before anything is sent, and does the rest.
func TestClient(t *testing.T) {
	w := recipestest.Start(t)
	ctx, below := recipestest.Context(t), w.Client(t)
	c := Wrap(below, mustNew(t, true,
		Rule{Name: "kept", Path: "/kept", Data: notEmpty, Keep: true, Ephemeral: Cannot, Sequential: Cannot, Watched: Cannot},
		Rule{Name: "free", Path: "/free"},
		Rule{Name: "members", Path: "/free/m", Ephemeral: Must, Watched: Must},
	))
	require.Same(t, below, c.Unchecked())
	r, _ := c.Schema().Rule("/kept")
	require.Equal(t, "kept", r.Name)

	_, err := c.Create(ctx, "/kept", nil, 0)
	require.ErrorIs(t, err, ErrData)
	_, err = c.Create(ctx, "/kept", []byte("x"), zk.FlagEphemeral)
	require.ErrorIs(t, err, ErrEphemeral)
	require.ErrorIs(t, c.EnsurePath(ctx, "/kept"), ErrData)
	stat, err := c.Exists(ctx, "/kept")
	require.NoError(t, err)
	require.Nil(t, stat, "nothing was sent")
	_, err = c.Create(ctx, "/kept", []byte("x"), 0)
	require.NoError(t, err)
	_, err = c.Set(ctx, "/kept", nil, -1)
	require.ErrorIs(t, err, ErrData)
	_, err = c.Set(ctx, "/kept", []byte("y"), -1)
	require.NoError(t, err)
	require.ErrorIs(t, c.Delete(ctx, "/kept", -1), ErrKept)
	require.ErrorIs(t, c.DeleteSurely("/kept"), ErrKept)
	_, _, _, err = c.GetW(ctx, "/kept")
	require.ErrorIs(t, err, ErrWatched)
	_, _, err = c.ExistsW(ctx, "/kept")
	require.ErrorIs(t, err, ErrWatched)
	_, _, _, err = c.ChildrenW(ctx, "/kept")
	require.ErrorIs(t, err, ErrWatched)
	data, _, err := c.Get(ctx, "/kept")
	require.NoError(t, err)
	require.Equal(t, "y", string(data))

	s, err := c.AwaitSession(ctx)
	require.NoError(t, err)
	require.NoError(t, c.EnsurePath(ctx, "/free"))
	node, err := c.CreateProtected(ctx, s, "/free/m", nil, zk.FlagEphemeral)
	require.NoError(t, err)
	_, err = c.CreateProtected(ctx, s, "/elsewhere", nil, zk.FlagEphemeral)
	require.ErrorIs(t, err, ErrNoRule)
	_, _, err = c.Get(ctx, node.Path)
	require.ErrorIs(t, err, ErrWatched, "a protected node has the rule of the path it was asked for")
	_, err = c.Exists(ctx, node.Path)
	require.ErrorIs(t, err, ErrWatched)
	_, _, err = c.Children(ctx, node.Path)
	require.ErrorIs(t, err, ErrWatched)
	_, _, gone, err := c.GetW(ctx, node.Path)
	require.NoError(t, err)
	_, _, err = c.ExistsW(ctx, node.Path)
	require.NoError(t, err)
	_, _, _, err = c.ChildrenW(ctx, node.Path)
	require.NoError(t, err)
	names, _, err := c.Children(ctx, "/free")
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.NoError(t, c.DeleteSurely(node.Path))
	require.Equal(t, zk.EventNodeDeleted, (<-gone).Type)
	require.NoError(t, c.Delete(ctx, "/free", -1))
}

func TestClientTxn(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := Wrap(w.Client(t), mustNew(t, false, Rule{Name: "kept", Path: "/kept", Data: notEmpty, Keep: true}))
	_, err := c.Txn().Create("/a", nil, 0).Create("/kept", nil, 0).Delete("/kept", -1).Commit(ctx)
	require.ErrorIs(t, err, ErrData, "the first violation")
	_, err = c.Txn().Create("/a", nil, 0).Create("/kept", []byte("x"), 0).Commit(ctx)
	require.NoError(t, err, "the one before was not sent")
	_, err = c.Txn().Check("/a", 0).Set("/kept", nil, 0).Commit(ctx)
	require.ErrorIs(t, err, ErrData)
	_, err = c.Txn().Delete("/a", -1).Delete("/kept", -1).Commit(ctx)
	require.ErrorIs(t, err, ErrKept)
	results, err := c.Txn().Check("/a", 0).Set("/kept", []byte("y"), 0).Delete("/a", 0).Commit(ctx)
	require.NoError(t, err)
	require.Len(t, results, 3)
	_, err = c.Txn().Check("/a", 0).Commit(ctx)
	require.ErrorIs(t, err, zk.ErrNoNode)
	var v *Violation
	require.False(t, errors.As(err, &v))
	_, err = c.Create(ctx, "/a/", nil, 0)
	require.ErrorIs(t, err, recipes.ErrPath)
}
