package conf

import (
	"math"
	"slices"
)

// Throttle bounds what clients may ask of the server. All of it can change while the server runs.
type Throttle struct {
	// LargeRequestBytes is the length from which a request counts against LargeRequestsBytesMax; -1 is off.
	LargeRequestBytes, LargeRequestsBytesMax int
	// RequestsMax is the number of requests in process above which no more are taken in; 0 is off. StallMs is how long ZooKeeper
	// waits before it looks again; here requests are taken in as soon as others are done.
	RequestsMax, StallMs int
	// DropStale drops the requests of connections that are closed. StaleByConnection and StaleByLatency say which are stale.
	DropStale, StaleByConnection, StaleByLatency bool
	// OpWaitMs is the time after which a request that waited is refused; 0 is off.
	OpWaitMs int
	// Sessions is the bucket that new sessions take their tokens from.
	Sessions SessionThrottle
}

// SessionThrottle is a bucket of tokens: a new session takes one or more, and is refused while there are none.
type SessionThrottle struct {
	// Tokens is the size of the bucket; 0 is off. FillCount tokens are added every FillMs.
	Tokens, FillMs, FillCount int
	// FreezeMs is the time between two adjustments of the probability of a refusal; -1 is off.
	FreezeMs int
	// DropIncrease and DropDecrease are the steps of that probability, DecreaseRatio the fill above which it falls.
	DropIncrease, DropDecrease, DecreaseRatio float64
	// Weighted lets kinds of sessions take different numbers of tokens, as follows.
	Weighted                                 bool
	GlobalWeight, LocalWeight, RenewalWeight int
}

func throttleDefaults() Throttle {
	return Throttle{
		LargeRequestBytes:     -1,
		LargeRequestsBytesMax: 100 << 20,
		StallMs:               100,
		DropStale:             true,
		StaleByConnection:     true,
		Sessions: SessionThrottle{
			FillMs: 1, FillCount: 1, FreezeMs: -1, DropIncrease: 0.02, DropDecrease: 0.002,
			GlobalWeight: globalWeightDefault, LocalWeight: localWeightDefault, RenewalWeight: renewalWeightDefault,
		},
	}
}

const (
	globalWeightDefault  = 3
	localWeightDefault   = 1
	renewalWeightDefault = 2
)

// throttleKeys are those of limits that matter when there is too much to do.
var throttleKeys = slices.Concat([]key{
	livePropInt("largeRequestThreshold", -1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.LargeRequestBytes }),
	livePropInt("largeRequestMaxBytes", 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.LargeRequestsBytesMax }),
	livePropInt("request_throttle_max_requests", 0, math.MaxInt32, func(c *Config) *int { return &c.Throttle.RequestsMax }),
	livePropBool("request_throttle_drop_stale", func(c *Config) *bool { return &c.Throttle.DropStale }),
	livePropBool("request_stale_connection_check", func(c *Config) *bool { return &c.Throttle.StaleByConnection }),
	livePropBool("request_stale_latency_check", func(c *Config) *bool { return &c.Throttle.StaleByLatency }),
	livePropInt("throttled_op_wait_time", 0, math.MaxInt32, func(c *Config) *int { return &c.Throttle.OpWaitMs }),
	livePropInt("connection_throttle_tokens", 0, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.Tokens }),
	livePropInt("connection_throttle_fill_time", 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.FillMs }),
	livePropInt("connection_throttle_fill_count", 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.FillCount }),
	livePropInt("connection_throttle_freeze_time", -1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.FreezeMs }),
	live(strictFloat("connection_throttle_drop_increase", dropIncrease), dropIncrease),
	live(strictFloat("connection_throttle_drop_decrease", dropDecrease), dropDecrease),
	live(strictFloat("connection_throttle_decrease_ratio", decreaseRatio), decreaseRatio),
	livePropBool("connection_throttle_weight_enabled", func(c *Config) *bool { return &c.Throttle.Sessions.Weighted }),
	livePropInt("connection_throttle_global_session_weight", math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.GlobalWeight }),
	livePropInt("connection_throttle_local_session_weight", math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.LocalWeight }),
	livePropInt("connection_throttle_renew_session_weight", math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.RenewalWeight }),
}, unused(
	propInt("request_throttle_stall_time", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.StallMs }),
))

func dropIncrease(c *Config) *float64  { return &c.Throttle.Sessions.DropIncrease }
func dropDecrease(c *Config) *float64  { return &c.Throttle.Sessions.DropDecrease }
func decreaseRatio(c *Config) *float64 { return &c.Throttle.Sessions.DecreaseRatio }

// live marks a key whose one field a running server takes.
func live[T any](k key, field func(*Config) *T) key {
	return k.running(func(to, from *Config) { *field(to) = *field(from) })
}

func livePropInt[T integer](name string, low, high int64, field func(*Config) *T) key {
	return live(propInt(name, property, low, high, field), field)
}

func livePropBool(name string, field func(*Config) *bool) key {
	return live(propBool(name, field), field)
}

// complete replaces weights that mean nothing as ZooKeeper does: no weight is less than 1, and no session weighs less than
// a local one.
func (t *SessionThrottle) complete() {
	for _, w := range []struct {
		weight *int
		byRule int
	}{{&t.GlobalWeight, globalWeightDefault}, {&t.LocalWeight, localWeightDefault}, {&t.RenewalWeight, renewalWeightDefault}} {
		if *w.weight <= 0 {
			*w.weight = w.byRule
		}
	}
	t.GlobalWeight, t.RenewalWeight = max(t.GlobalWeight, t.LocalWeight), max(t.RenewalWeight, t.LocalWeight)
}
