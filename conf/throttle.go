package conf

import "math"

// Throttle bounds what clients may ask of the server. This version parses it and bounds nothing by it.
type Throttle struct {
	// LargeRequestBytes is the length from which a request counts against LargeRequestsBytesMax; -1 is off.
	LargeRequestBytes, LargeRequestsBytesMax int
	// RequestsMax is the number of requests in process above which no more are taken in; 0 is off. StallMs is how long
	// one waits before it looks again.
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

// throttleKeys are those of limits that this version does not have yet.
var throttleKeys = unused(
	propInt("largeRequestThreshold", property, -1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.LargeRequestBytes }),
	propInt("largeRequestMaxBytes", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.LargeRequestsBytesMax }),
	propInt("request_throttle_max_requests", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Throttle.RequestsMax }),
	propInt("request_throttle_stall_time", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.StallMs }),
	propBool("request_throttle_drop_stale", func(c *Config) *bool { return &c.Throttle.DropStale }),
	propBool("request_stale_connection_check", func(c *Config) *bool { return &c.Throttle.StaleByConnection }),
	propBool("request_stale_latency_check", func(c *Config) *bool { return &c.Throttle.StaleByLatency }),
	propInt("throttled_op_wait_time", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Throttle.OpWaitMs }),
	propInt("connection_throttle_tokens", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.Tokens }),
	propInt("connection_throttle_fill_time", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.FillMs }),
	propInt("connection_throttle_fill_count", property, 1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.FillCount }),
	propInt("connection_throttle_freeze_time", property, -1, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.FreezeMs }),
	strictFloat("connection_throttle_drop_increase", func(c *Config) *float64 { return &c.Throttle.Sessions.DropIncrease }),
	strictFloat("connection_throttle_drop_decrease", func(c *Config) *float64 { return &c.Throttle.Sessions.DropDecrease }),
	strictFloat("connection_throttle_decrease_ratio", func(c *Config) *float64 { return &c.Throttle.Sessions.DecreaseRatio }),
	propBool("connection_throttle_weight_enabled", func(c *Config) *bool { return &c.Throttle.Sessions.Weighted }),
	propInt("connection_throttle_global_session_weight", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.GlobalWeight }),
	propInt("connection_throttle_local_session_weight", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.LocalWeight }),
	propInt("connection_throttle_renew_session_weight", property, math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.Throttle.Sessions.RenewalWeight }),
)

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
