package discovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

const base = "/services"

func newDiscovery[T any](t *testing.T, c *recipes.Client, o Options) *Discovery[T] {
	t.Helper()
	d, err := New[T](c, base, o)
	require.NoError(t, err)
	return d
}

func TestNewRefuses(t *testing.T) {
	for _, at := range []string{"", "services", "/services/", "/a//b"} {
		_, err := New[None](nil, at, Options{})
		require.Error(t, err, at)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, c, raw := recipestest.Context(t), w.Client(t), w.Raw(t)
	d := newDiscovery[payload](t, c, Options{JavaClass: "Payload"})
	r, err := d.Register(ctx, Instance[payload]{Name: "svc", ID: "i1", Address: "h", Port: 1, Payload: payload{"x"}})
	require.NoError(t, err)
	registered, err := r.Registered()
	require.True(t, registered)
	require.NoError(t, err)

	data, stat, err := raw.Get(w.Abs(base + "/svc/i1"))
	require.NoError(t, err)
	require.Equal(t, c.Session().ID(), stat.EphemeralOwner)
	require.Contains(t, string(data), `"payload":{"@class":"Payload","val":"x"}`)
	names, err := d.Names(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"svc"}, names)

	_, err = d.Register(ctx, Instance[payload]{Name: "svc", ID: "i1"})
	require.ErrorIs(t, err, ErrTaken)

	changed := r.Instance()
	changed.Port = 2
	require.NoError(t, r.Update(ctx, changed))
	found, err := d.Instance(ctx, "svc", "i1")
	require.NoError(t, err)
	require.Equal(t, 2, found.Port)
	require.Equal(t, "i1", found.Node())
	require.Equal(t, r.Instance().Registered.UnixMilli(), found.Registered.UnixMilli())
	require.ErrorContains(t, r.Update(ctx, Instance[payload]{ID: "other"}), "cannot be changed")

	require.NoError(t, r.Close(ctx))
	require.NoError(t, r.Close(ctx), "once more does no harm")
	exists, _, err := raw.Exists(w.Abs(base + "/svc/i1"))
	require.NoError(t, err)
	require.False(t, exists)
	require.ErrorIs(t, r.Update(ctx, changed), ErrUnregistered)
	_, err = d.Instance(ctx, "svc", "i1")
	require.ErrorIs(t, err, ErrNoInstance)
	instances, err := d.Instances(ctx, "none")
	require.NoError(t, err)
	require.Empty(t, instances)
}

func TestRegisterWithoutID(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	d := newDiscovery[None](t, w.Client(t), Options{})
	for range 2 {
		_, err := d.Register(ctx, Instance[None]{Name: "svc"})
		require.NoError(t, err)
		_, err = d.Register(ctx, Instance[None]{Name: "svc", ID: "same", Type: DynamicSequential})
		require.NoError(t, err)
	}
	instances, err := d.Instances(ctx, "svc")
	require.NoError(t, err)
	require.Len(t, instances, 4)
}

func TestRegisterRefused(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	_, err := raw.Create(w.Abs(base), nil, 0, zk.WorldACL(zk.PermRead))
	require.NoError(t, err)
	d := newDiscovery[None](t, w.Client(t), Options{})
	_, err = d.Register(ctx, Instance[None]{Name: "svc"})
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = d.Register(ctx, Instance[None]{})
	require.Error(t, err)
}

// types are all that a registration can be. The node is what others see of it.
var types = []ServiceType{Dynamic, Static, DynamicSequential}

// alone returns the only instance of the service, or nothing.
func alone[T any](t *testing.T, d *Discovery[T], name string) (Instance[T], bool) {
	instances, err := d.Instances(context.Background(), name)
	require.NoError(t, err)
	if len(instances) != 1 {
		return Instance[T]{}, false
	}
	return instances[0], true
}

// fault is a trouble before each registration, before all updates, or before each update.
type fault struct{ register, between, update func(*servertest.Proxy) }

func TestRegisterUnderFaults(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	faults := map[string]fault{
		"lost reply of the create": {register: func(p *servertest.Proxy) { p.DropReply(opCreate) }},
		"lost create":              {register: func(p *servertest.Proxy) { p.DropRequest(opCreate) }},
		"lost reply of the update": {update: func(p *servertest.Proxy) { p.DropReply(opSetData) }},
		"lost update":              {update: func(p *servertest.Proxy) { p.DropRequest(opSetData) }},
		"session expires":          {between: func(p *servertest.Proxy) { p.Expire() }},
		"server restarts":          {between: func(*servertest.Proxy) { w.Restart() }},
		"connection is cut":        {between: func(p *servertest.Proxy) { p.Cut() }, update: func(p *servertest.Proxy) { p.Cut() }},
		"slow network":             {register: func(p *servertest.Proxy) { p.Delay(10 * time.Millisecond) }},
		"lost reply, then expiry": {
			register: func(p *servertest.Proxy) { p.DropReply(opCreate) }, between: func(p *servertest.Proxy) { p.Expire() },
			update: func(p *servertest.Proxy) { p.DropReply(opCreate) },
		},
	}
	look := newDiscovery[string](t, w.Client(t), Options{})
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			c, proxy := w.Faulty(t)
			registerUnder(t, f, c, proxy, look)
		})
	}
}

// registerUnder registers, updates and unregisters one instance of each type.
func registerUnder(t *testing.T, f fault, c *recipes.Client, proxy *servertest.Proxy, look *Discovery[string]) {
	ctx, d := recipestest.Context(t), newDiscovery[string](t, c, Options{})
	happen := func(do func(*servertest.Proxy)) {
		if do != nil {
			do(proxy)
		}
	}
	name := "svc-" + randomID()
	var registrations []*Registration[string]
	for _, kind := range types {
		require.NoError(t, c.EnsurePath(ctx, base+"/"+name+kind.String()))
		happen(f.register)
		r, err := d.Register(ctx, Instance[string]{Name: name + kind.String(), ID: "i", Type: kind, Payload: "first"})
		require.NoError(t, err)
		registrations = append(registrations, r)
	}
	happen(f.between)
	for _, r := range registrations {
		happen(f.update)
		changed := r.Instance()
		changed.Payload = "second"
		require.NoError(t, r.Update(ctx, changed))
	}
	for _, r := range registrations {
		recipestest.Eventually(t, func() bool {
			registered, _ := r.Registered()
			i, there := alone(t, look, r.Instance().Name)
			return registered && there && i.Payload == "second"
		}, "the instance is registered once, with the last payload")
		require.NoError(t, r.Close(ctx))
		instances, err := look.Instances(ctx, r.Instance().Name)
		require.NoError(t, err)
		require.Empty(t, instances)
	}
}

func TestRegisterOverLeaderChange(t *testing.T) {
	t.Parallel()
	w := recipestest.StartThree(t)
	ctx, c := recipestest.Context(t), w.Client(t)
	d := newDiscovery[string](t, c, Options{})
	r, err := d.Register(ctx, Instance[string]{Name: "svc", ID: "i", Payload: "first"})
	require.NoError(t, err)
	p, err := d.Provider(ctx, "svc", ProviderOptions[string]{})
	require.NoError(t, err)
	defer p.Close()
	w.ChangeLeader()
	changed := r.Instance()
	changed.Payload = "second"
	require.NoError(t, r.Update(ctx, changed))
	recipestest.Eventually(t, func() bool {
		i, err := p.Pick()
		return err == nil && i.Payload == "second"
	}, "the provider sees the change")
	require.NoError(t, r.Close(ctx))
	recipestest.Eventually(t, func() bool { return len(p.Instances()) == 0 }, "the provider sees the end")
}

// A server that was killed and started again finds the node of its earlier life, whose session has not expired yet.
func TestRegisterReplacesStaleNode(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	for _, kind := range []ServiceType{Dynamic, Static} {
		old := newDiscovery[string](t, w.Client(t), Options{})
		i := Instance[string]{Name: "svc", ID: kind.String(), Type: kind, Payload: "old"}
		before, err := old.Register(ctx, i)
		require.NoError(t, err)
		i.Payload = "new"
		c := w.Client(t)
		d := newDiscovery[string](t, c, Options{})
		after, err := d.Register(ctx, i)
		require.NoError(t, err)
		if kind == Dynamic {
			recipestest.Eventually(t, func() bool {
				registered, err := before.Registered()
				return !registered && err != nil
			}, "the first one knows that it was replaced")
			_, err = before.Registered()
			require.ErrorIs(t, err, ErrTaken)
			require.NoError(t, before.Close(ctx))
			found, err := d.Instance(ctx, "svc", kind.String())
			require.NoError(t, err, "the first one leaves the node of the second alone")
			require.Equal(t, "new", found.Payload)
		}
		require.NoError(t, after.Close(ctx))
	}
}

// The instance that was replaced comes back when the other goes, and one that somebody deletes is made again.
func TestRegisterAgain(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	first := newDiscovery[string](t, w.Client(t), Options{})
	r, err := first.Register(ctx, Instance[string]{Name: "svc", ID: "i", Payload: "first"})
	require.NoError(t, err)
	_, stat, err := raw.Get(w.Abs(base + "/svc/i"))
	require.NoError(t, err)
	require.NoError(t, raw.Delete(w.Abs(base+"/svc/i"), -1))
	recipestest.Eventually(t, func() bool {
		_, now, err := raw.Get(w.Abs(base + "/svc/i"))
		return err == nil && now.Czxid > stat.Czxid
	}, "the node is made again")

	second := newDiscovery[string](t, w.Client(t), Options{})
	other, err := second.Register(ctx, Instance[string]{Name: "svc", ID: "i", Payload: "second"})
	require.NoError(t, err)
	recipestest.Eventually(t, func() bool { _, err := r.Registered(); return err != nil }, "the first one was replaced")
	require.NoError(t, other.Close(ctx))
	recipestest.Eventually(t, func() bool {
		i, there := alone(t, second, "svc")
		return there && i.Payload == "first"
	}, "the first one is back")
}

// A call that is given up leaves nothing behind, not even what was made though its reply was lost.
func TestRegisterGivenUp(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	for _, kind := range types {
		t.Run(kind.String(), func(t *testing.T) {
			ctx, name := recipestest.Context(t), "given-up-"+kind.String()
			c, proxy := w.Faulty(t)
			require.NoError(t, c.EnsurePath(ctx, base+"/"+name))
			d := newDiscovery[None](t, c, Options{})
			look := newDiscovery[None](t, w.Client(t), Options{})
			proxy.Refuse(true)
			proxy.DropReply(opCreate)
			short, cancel := context.WithCancel(ctx)
			failed := make(chan error)
			go func() {
				_, err := d.Register(short, Instance[None]{Name: name, ID: "i", Type: kind})
				failed <- err
			}()
			recipestest.Eventually(t, func() bool { _, there := alone(t, look, name); return there }, "the node is there, but the reply is lost")
			cancel()
			require.ErrorIs(t, <-failed, context.Canceled)
			proxy.Refuse(false)
			recipestest.Eventually(t, func() bool {
				instances, err := look.Instances(ctx, name)
				require.NoError(t, err)
				return len(instances) == 0
			}, "the node is gone")
			_, err := d.Register(ctx, Instance[None]{Name: name, ID: "i", Type: kind})
			require.NoError(t, err, "the first one does not stand in the way")
		})
	}
}

func TestCloseGivenUp(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	d := newDiscovery[None](t, c, Options{})
	r, err := d.Register(ctx, Instance[None]{Name: "svc", ID: "i", Type: Static})
	require.NoError(t, err)
	proxy.Freeze()
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, r.Close(over), context.Canceled)
	proxy.Thaw()
	require.NoError(t, r.Close(ctx))
	_, err = d.Instance(ctx, "svc", "i")
	require.ErrorIs(t, err, ErrNoInstance)
}

func TestClientClosed(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, c := recipestest.Context(t), w.Client(t)
	d := newDiscovery[None](t, c, Options{})
	r, err := d.Register(ctx, Instance[None]{Name: "svc", ID: "i"})
	require.NoError(t, err)
	p, err := d.Provider(ctx, "svc", ProviderOptions[None]{})
	require.NoError(t, err)
	c.Close()
	require.NoError(t, r.Close(ctx))
	_, err = r.Registered()
	require.ErrorIs(t, err, recipes.ErrClosed)
	p.Close()
	require.Len(t, p.Instances(), 1, "what was known last")
	require.False(t, p.Status().Connected)
	_, err = d.Register(ctx, Instance[None]{Name: "svc", ID: "other"})
	require.ErrorIs(t, err, recipes.ErrClosed)
	_, err = d.Provider(ctx, "svc", ProviderOptions[None]{})
	require.ErrorIs(t, err, recipes.ErrClosed)
}

// Random faults: in the end each instance is there once, with its last payload.
func TestRegisterRandomly(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	random := rand.New(rand.NewPCG(recipestest.Seed(t), 0))
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	d, look := newDiscovery[int](t, c, Options{}), newDiscovery[int](t, w.Client(t), Options{})
	var registrations []*Registration[int]
	for i := range 6 {
		r, err := d.Register(ctx, Instance[int]{Name: "svc", ID: fmt.Sprint(i), Type: types[i%len(types)]})
		require.NoError(t, err)
		registrations = append(registrations, r)
	}
	faults := []func(){
		proxy.Cut, proxy.Expire,
		func() { proxy.DropReply(opCreate) }, func() { proxy.DropReply(opSetData) }, func() { proxy.DropReply(opMulti) },
		func() { proxy.DropRequest(opSetData) }, func() { proxy.Delay(time.Duration(random.IntN(5)) * time.Millisecond) },
	}
	for step := range 15 {
		faults[random.IntN(len(faults))]()
		r := registrations[random.IntN(len(registrations))]
		i := r.Instance()
		i.Payload = step + 1
		require.NoError(t, r.Update(ctx, i))
	}
	proxy.Delay(0)
	recipestest.Eventually(t, func() bool {
		instances, err := look.Instances(ctx, "svc")
		require.NoError(t, err)
		if len(instances) != len(registrations) {
			return false
		}
		for _, i := range instances {
			var id int
			fmt.Sscan(i.ID, &id)
			if i.Payload != registrations[id].Instance().Payload {
				return false
			}
		}
		return true
	}, "every instance once, with its last payload")
	for _, r := range registrations {
		require.NoError(t, r.Close(ctx))
	}
	instances, err := look.Instances(ctx, "svc")
	require.NoError(t, err)
	require.Empty(t, instances)
}
