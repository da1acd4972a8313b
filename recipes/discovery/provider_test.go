package discovery

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// ids are those of the instances that can be handed out, as one text.
func ids[T any](p *Provider[T]) string {
	text := ""
	for _, i := range p.Instances() {
		text += i.ID
	}
	return text
}

func eventuallyIDs[T any](t *testing.T, p *Provider[T], want string) {
	t.Helper()
	recipestest.Eventually(t, func() bool { return ids(p) == want }, fmt.Sprintf("the instances are %q", want))
}

func TestProvider(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	d := newDiscovery[string](t, w.Client(t), Options{})
	p, err := d.Provider(ctx, "svc", ProviderOptions[string]{Filter: func(i Instance[string]) bool { return i.Payload != "hidden" }})
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Pick()
	require.ErrorIs(t, err, ErrNoInstance)

	changed := p.Changed()
	a, err := d.Register(ctx, Instance[string]{Name: "svc", ID: "a"})
	require.NoError(t, err)
	<-changed
	_, err = d.Register(ctx, Instance[string]{Name: "svc", ID: "b"})
	require.NoError(t, err)
	eventuallyIDs(t, p, "ab")
	picked := ""
	for range 4 {
		i, err := p.Pick()
		require.NoError(t, err)
		picked += i.ID
	}
	require.Equal(t, "abab", picked)

	i := a.Instance()
	i.Disabled = true
	require.NoError(t, a.Update(ctx, i))
	eventuallyIDs(t, p, "b")
	i.Disabled, i.Payload = false, "hidden"
	require.NoError(t, a.Update(ctx, i))
	recipestest.Eventually(t, func() bool { return p.Status().Instances == 2 && ids(p) == "b" }, "a is left out by the filter")
	i.Payload = ""
	require.NoError(t, a.Update(ctx, i))
	eventuallyIDs(t, p, "ab")
	require.NoError(t, a.Close(ctx))
	eventuallyIDs(t, p, "b")
}

func TestProviderNotesErrors(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, clock := recipestest.Context(t), newFakeClock()
	d := newDiscovery[None](t, w.Client(t), Options{Clock: clock})
	a, err := d.Register(ctx, Instance[None]{Name: "svc", ID: "a"})
	require.NoError(t, err)
	_, err = d.Register(ctx, Instance[None]{Name: "svc", ID: "b"})
	require.NoError(t, err)
	p, err := d.Provider(ctx, "svc", ProviderOptions[None]{Down: DownPolicy{Errors: 1, Window: time.Minute}})
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, "ab", ids(p))
	i, err := p.Pick()
	require.NoError(t, err)
	p.NoteError(i)
	require.Equal(t, "b", ids(p))
	require.Equal(t, 1, p.Status().Down)
	clock.advance(time.Minute)
	require.Equal(t, "ab", ids(p))
	p.NoteError(i)
	require.Equal(t, "b", ids(p))
	require.NoError(t, a.Close(ctx))
	recipestest.Eventually(t, func() bool { return p.Status().Instances == 1 }, "a is gone")
	_, err = d.Register(ctx, Instance[None]{Name: "svc", ID: "a"})
	require.NoError(t, err)
	eventuallyIDs(t, p, "ab")
	p.NoteError(i) // of its earlier life
	require.Equal(t, "ab", ids(p))
}

// What others write badly is left out and told, and does not hide the rest.
func TestMalformedIsSkipped(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	var mu sync.Mutex
	skipped := map[string]error{}
	d := newDiscovery[payload](t, w.Client(t), Options{Skipped: func(path string, err error) {
		mu.Lock()
		defer mu.Unlock()
		skipped[path] = err
	}})
	require.NoError(t, d.client.EnsurePath(ctx, base+"/svc"))
	for node, text := range map[string]string{"a": `{"name":"svc","id":"a"}`, "b": `nonsense`, "c": `{"name":"svc","id":"c","payload":[]}`} {
		_, err := raw.Create(w.Abs(base+"/svc/"+node), []byte(text), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	instances, err := d.Instances(ctx, "svc")
	require.NoError(t, err)
	require.Len(t, instances, 1)
	mu.Lock()
	require.Len(t, skipped, 2)
	require.ErrorIs(t, skipped[base+"/svc/b"], ErrMalformed)
	clear(skipped)
	mu.Unlock()
	_, err = d.Instance(ctx, "svc", "c")
	require.ErrorIs(t, err, ErrMalformed)

	p, err := d.Provider(ctx, "svc", ProviderOptions[payload]{})
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, "a", ids(p))
	require.Len(t, p.Status().Skipped, 2)
	mu.Lock()
	require.Len(t, skipped, 2)
	mu.Unlock()
	_, err = raw.Set(w.Abs(base+"/svc/b"), []byte(`{"name":"svc","id":"b"}`), -1)
	require.NoError(t, err)
	eventuallyIDs(t, p, "ab")
	_, err = raw.Set(w.Abs(base+"/svc/a"), []byte(`{`), -1)
	require.NoError(t, err)
	eventuallyIDs(t, p, "b")
	require.NoError(t, raw.Delete(w.Abs(base+"/svc/a"), -1))
	recipestest.Eventually(t, func() bool { return len(p.Status().Skipped) == 1 }, "a malformed node that is gone is forgotten")
}

func TestUnreadableIsSkipped(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	d := newDiscovery[None](t, w.Client(t), Options{})
	_, err := d.Register(ctx, Instance[None]{Name: "svc", ID: "a"})
	require.NoError(t, err)
	_, err = raw.Create(w.Abs(base+"/svc/secret"), nil, 0, zk.WorldACL(zk.PermAdmin))
	require.NoError(t, err)
	p, err := d.Provider(ctx, "svc", ProviderOptions[None]{})
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, "a", ids(p))
	require.ErrorIs(t, p.Status().Skipped["secret"], zk.ErrNoAuth)

	_, err = raw.SetACL(w.Abs(base+"/svc"), zk.WorldACL(zk.PermWrite|zk.PermAdmin), -1)
	require.NoError(t, err)
	_, err = d.Provider(ctx, "svc", ProviderOptions[None]{})
	require.ErrorIs(t, err, zk.ErrNoAuth)
	for _, node := range []string{"/svc", "/svc/secret"} { // else nobody can clear up
		_, err = raw.SetACL(w.Abs(base+node), zk.WorldACL(zk.PermAll), -1)
		require.NoError(t, err)
	}
}

func TestProviderUnderFaults(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	other := newDiscovery[int](t, w.Client(t), Options{})
	for fault, do := range map[string]func(*servertest.Proxy){
		"connection is cut": func(p *servertest.Proxy) { p.Cut() },
		"session expires":   func(p *servertest.Proxy) { p.Expire() },
		"server restarts":   func(*servertest.Proxy) { w.Restart() },
		"slow network":      func(p *servertest.Proxy) { p.Delay(10 * time.Millisecond) },
	} {
		t.Run(fault, func(t *testing.T) {
			ctx, name := recipestest.Context(t), "svc-"+randomID()
			c, proxy := w.Faulty(t)
			a, err := other.Register(ctx, Instance[int]{Name: name, ID: "a"})
			require.NoError(t, err)
			p, err := newDiscovery[int](t, c, Options{}).Provider(ctx, name, ProviderOptions[int]{})
			require.NoError(t, err)
			defer p.Close()
			require.Equal(t, "a", ids(p))
			for round := range 2 {
				do(proxy)
				b, err := other.Register(ctx, Instance[int]{Name: name, ID: "b"})
				require.NoError(t, err)
				eventuallyIDs(t, p, "ab")
				i := a.Instance()
				i.Payload = round + 1
				require.NoError(t, a.Update(ctx, i))
				require.NoError(t, b.Close(ctx))
				recipestest.Eventually(t, func() bool {
					list := p.Instances()
					return len(list) == 1 && list[0].Payload == round+1
				}, "the change of a and the end of b are seen")
			}
			require.NoError(t, a.Close(ctx))
		})
	}
}

// While there is no connection the provider goes on with what it knows, and catches up afterwards.
func TestProviderWithoutConnection(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	other := newDiscovery[None](t, w.Client(t), Options{})
	a, err := other.Register(ctx, Instance[None]{Name: "svc", ID: "a"})
	require.NoError(t, err)
	c, proxy := w.Faulty(t)
	p, err := newDiscovery[None](t, c, Options{}).Provider(ctx, "svc", ProviderOptions[None]{})
	require.NoError(t, err)
	defer p.Close()
	proxy.Refuse(true)
	proxy.Cut()
	recipestest.Eventually(t, func() bool { return !p.Status().Connected }, "the connection is lost")
	require.NoError(t, a.Close(ctx))
	_, err = other.Register(ctx, Instance[None]{Name: "svc", ID: "b"})
	require.NoError(t, err)
	require.Equal(t, "a", ids(p))
	proxy.Refuse(false)
	eventuallyIDs(t, p, "b")
}

func TestProviderDampens(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, clock := recipestest.Context(t), newFakeClock()
	d := newDiscovery[None](t, w.Client(t), Options{Clock: clock})
	registrations := map[string]*Registration[None]{}
	for _, id := range []string{"a", "b", "c", "d"} {
		r, err := d.Register(ctx, Instance[None]{Name: "svc", ID: id})
		require.NoError(t, err)
		registrations[id] = r
	}
	p, err := d.Provider(ctx, "svc", ProviderOptions[None]{Dampening: Dampening{Wait: time.Minute, RemovalsPerMinute: 1}})
	require.NoError(t, err)
	defer p.Close()
	disabled := registrations["d"].Instance()
	disabled.Disabled = true
	require.NoError(t, registrations["d"].Update(ctx, disabled))
	eventuallyIDs(t, p, "abc")
	for _, r := range registrations {
		require.NoError(t, r.Close(ctx))
	}
	recipestest.Eventually(t, func() bool { return p.Status().Instances == 3 && p.Status().Kept == 3 }, "three are kept, the disabled one is gone")
	require.Equal(t, "abc", ids(p))
	_, err = d.Register(ctx, Instance[None]{Name: "svc", ID: "b"})
	require.NoError(t, err)
	recipestest.Eventually(t, func() bool { return p.Status().Kept == 2 }, "b is back")
	clock.advance(time.Minute)
	eventuallyIDs(t, p, "bc")
	clock.advance(time.Minute - time.Second)
	require.Equal(t, "bc", ids(p))
	clock.advance(time.Second)
	eventuallyIDs(t, p, "b")
	require.Zero(t, p.Status().Kept)
}

func TestProviderGivenUp(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	c, proxy := w.Faulty(t)
	d := newDiscovery[None](t, c, Options{})
	proxy.Freeze()
	over, cancel := context.WithCancel(recipestest.Context(t))
	cancel()
	_, err := d.Provider(over, "svc", ProviderOptions[None]{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.Provider(over, "a/b", ProviderOptions[None]{})
	require.ErrorContains(t, err, "service name")
	proxy.Thaw()
}

// A strategy that returns nonsense costs nothing but an instance.
func TestProviderWithBadStrategy(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	d := newDiscovery[None](t, w.Client(t), Options{})
	_, err := d.Register(ctx, Instance[None]{Name: "svc"})
	require.NoError(t, err)
	p, err := d.Provider(ctx, "svc", ProviderOptions[None]{Strategy: badStrategy{}})
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Pick()
	require.ErrorIs(t, err, ErrNoInstance)
}

type badStrategy struct{}

func (badStrategy) Pick([]string) int { return -1 }

// When connections break one after the other, package zk forgets that it has not been told of a change: the second time it
// asks as of the last reply it has had.
func TestProviderOnFlappingConnection(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	other := newDiscovery[None](t, w.Client(t), Options{})
	c, proxy := w.Faulty(t)
	p, err := newDiscovery[None](t, c, Options{}).Provider(ctx, "svc", ProviderOptions[None]{})
	require.NoError(t, err)
	defer p.Close()
	for _, id := range []string{"a", "b"} {
		proxy.Refuse(true)
		proxy.Cut()
		recipestest.Eventually(t, func() bool { return !p.Status().Connected }, "the connection is lost")
		before := p.Status().Instances
		_, err := other.Register(ctx, Instance[None]{Name: "svc", ID: id})
		require.NoError(t, err)
		read := make(chan error)
		go func() {
			_, _, err := c.Get(ctx, "/") // waits in front of the watches
			read <- err
		}()
		proxy.DropRequest(opSetWatches)
		proxy.Refuse(false)
		require.NoError(t, <-read)
		recipestest.Eventually(t, func() bool { return p.Status().Instances == before+1 }, "the change is seen")
	}
}
