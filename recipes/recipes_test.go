package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
)

func TestSequence(t *testing.T) {
	for name, want := range map[string]int64{
		"lock-0000000007": 7,
		"_c_0b3de4a8-6e0b-4b0c-8f0e-5e0b7d1f3a55-lock-0000000012": 12,
		"9f86d081884c7d659a2feaa0c55ad015__lock__0000000003":      3,
		"lock-2147483647":         2147483647,
		"lock--2147483648":        2147483648,
		"__lock__-2147483648":     2147483648,
		"lock--2147483647":        2147483649,
		"lock--000000001":         4294967295,
		"lock":                    -1,
		"":                        -1,
		"lock-7":                  -1,
		"lock-000000001":          4294967295, // nine digits and a sign: "lock" and the counter's last number
		"lock_000000001":          -1,
		"lock-9999999999":         -1,
		"run3-0000000004":         4,
		"0000000005":              5,
		"deployment20000000005":   5,
		"lock-0000000005-release": -1,
	} {
		require.Equal(t, want, recipes.Sequence(name), name)
	}
}

func TestRetryPolicies(t *testing.T) {
	waits := func(p recipes.RetryPolicy) (all []time.Duration) {
		for attempt := range 6 {
			wait, again := p(attempt)
			if !again {
				break
			}
			all = append(all, wait)
		}
		return all
	}
	require.Equal(t, []time.Duration{10, 20, 40, 50, 50, 50}, waits(recipes.Exponential(10, 50)))
	require.Equal(t, []time.Duration{5, 5}, waits(recipes.Times(2, 5)))
	require.Empty(t, waits(recipes.Never()))
	wait, _ := recipes.Exponential(time.Second, time.Hour)(1 << 30)
	require.Equal(t, time.Hour, wait)
}

func TestStateNames(t *testing.T) {
	require.Equal(t, "Connecting Connected Suspended Reconnected Lost", names(recipes.Connecting, recipes.Connected,
		recipes.Suspended, recipes.Reconnected, recipes.Lost))
	require.Equal(t, "State(-1) State(5)", names(-1, 5))
	require.True(t, recipes.Reconnected.IsConnected())
	require.False(t, recipes.Suspended.IsConnected())
}

func names(states ...recipes.State) (all string) {
	for i, s := range states {
		if i > 0 {
			all += " "
		}
		all += s.String()
	}
	return all
}

func TestOptionsAreChecked(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, o := range []recipes.Options{
		{SessionTimeout: -time.Second}, {SessionTimeout: time.Microsecond}, {SessionTimeout: 1000 * time.Hour},
		{Namespace: "app"}, {Namespace: "/app/"}, {Namespace: "/a//b"}, {Namespace: "/a/../b"},
	} {
		_, err := recipes.Connect(ctx, []string{"127.0.0.1:1"}, o)
		require.Error(t, err, "%+v", o)
	}
	_, err := recipes.Connect(ctx, nil, recipes.Options{})
	require.Error(t, err)
}

func TestConnectEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	dials := make(chan struct{}, 100)
	go func() { <-dials; cancel(why) }()
	_, err := recipes.Connect(ctx, []string{"127.0.0.1:1"}, recipes.Options{Logger: logTo(dials)})
	require.ErrorIs(t, err, why)
}

// logTo tells of each line of package zk, such as a connection that failed.
type logTo chan struct{}

func (l logTo) Printf(string, ...any) {
	select {
	case l <- struct{}{}:
	default:
	}
}

var _ zk.Logger = logTo(nil)
