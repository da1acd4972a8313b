package recipes_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// A server looks for the right to create before it looks whether the node exists.
func TestEnsurePathBelowANodeThatTakesNoChildren(t *testing.T) {
	w := recipestest.Start(t)
	raw := w.Raw(t)
	_, err := raw.Create(w.Abs("/closed"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = raw.Create(w.Abs("/closed/app"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = raw.SetACL(w.Abs("/closed"), zk.WorldACL(zk.PermRead|zk.PermAdmin|zk.PermDelete), -1)
	require.NoError(t, err)

	c := w.Client(t)
	require.NoError(t, c.EnsurePath(t.Context(), "/closed/app"), "it is there")
	require.NoError(t, c.EnsurePath(t.Context(), "/closed/app/more"))
	require.ErrorIs(t, c.EnsurePath(t.Context(), "/closed/other"), zk.ErrNoAuth)

	inside := w.Client(t, func(o *recipes.Options) { o.Namespace += "/closed/app" })
	_, err = inside.Create(t.Context(), "/x", nil, 0)
	require.NoError(t, err)
}
