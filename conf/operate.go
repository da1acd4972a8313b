package conf

import (
	"fmt"
	"math"
	"strings"
)

// Admin configures the HTTP admin server.
type Admin struct {
	Enabled       bool
	Address       string
	Port          int
	CommandURL    string
	IdleTimeoutMs int
	// PortUnification takes plain and encrypted requests on the port, ForceHTTPS encrypted ones only, NeedClientAuth only
	// those of clients with a certificate.
	PortUnification, ForceHTTPS, NeedClientAuth bool
	// RateLimitMs is the least time between two snapshots, and between two restores.
	RateLimitMs int
	// SnapshotEnabled and RestoreEnabled allow the two commands.
	SnapshotEnabled, RestoreEnabled bool
}

// Metrics says how metrics leave the server.
type Metrics struct {
	// ClassName is the Java class that was named, "" for none.
	ClassName string
	// Host and Port are where Prometheus finds the metrics.
	Host string
	Port int
	// ExportJVMInfo adds the metrics of the runtime.
	ExportJVMInfo bool
}

// Pauses says from which length on a standstill of the process is reported.
type Pauses struct {
	Enabled                           bool
	SleepMs, InfoAboveMs, WarnAboveMs int64
}

// adminKeys are those of whoever watches and runs the server.
var adminKeys = append([]key{
	{name: "admin.enableServer", reach: property, set: setAdminEnabled, show: showBool(func(c *Config) *bool { return &c.Admin.Enabled })},
	text("admin.serverAddress", property, func(c *Config) *string { return &c.Admin.Address }),
	propInt("admin.serverPort", property, 0, math.MaxUint16, func(c *Config) *int { return &c.Admin.Port }),
	text("admin.commandURL", property, func(c *Config) *string { return &c.Admin.CommandURL }),
	propInt("admin.idleTimeout", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Admin.IdleTimeoutMs }),
	propBool("admin.portUnification", func(c *Config) *bool { return &c.Admin.PortUnification }),
	propBool("admin.forceHttps", func(c *Config) *bool { return &c.Admin.ForceHTTPS }),
	propBool("admin.needClientAuth", func(c *Config) *bool { return &c.Admin.NeedClientAuth }),
	propInt("admin.rateLimiterIntervalInMS", property, 0, math.MaxInt32, func(c *Config) *int { return &c.Admin.RateLimitMs }),
	propBool("admin.snapshot.enabled", func(c *Config) *bool { return &c.Admin.SnapshotEnabled }),
	propBool("admin.restore.enabled", func(c *Config) *bool { return &c.Admin.RestoreEnabled }),
}, unused(
	strictBool("jvm.pause.monitor", func(c *Config) *bool { return &c.Pauses.Enabled }),
	propInt("jvm.pause.sleep.time.ms", direct, 1, math.MaxInt32, func(c *Config) *int64 { return &c.Pauses.SleepMs }),
	propInt("jvm.pause.info-threshold.ms", direct, 1, math.MaxInt32, func(c *Config) *int64 { return &c.Pauses.InfoAboveMs }),
	propInt("jvm.pause.warn-threshold.ms", direct, 1, math.MaxInt32, func(c *Config) *int64 { return &c.Pauses.WarnAboveMs }),
)...)

// metricsKeys say how metrics leave the server.
var metricsKeys = []key{
	{name: "metricsProvider.className", reach: direct, set: setMetricsProvider, show: showText(func(c *Config) *string { return &c.Metrics.ClassName })},
	text("metricsProvider.httpHost", direct, func(c *Config) *string { return &c.Metrics.Host }),
	propInt("metricsProvider.httpPort", direct, 0, math.MaxUint16, func(c *Config) *int { return &c.Metrics.Port }),
	{
		name: "metricsProvider.exportJvmInfo", reach: direct,
		set: setPropBool(func(c *Config) *bool { return &c.Metrics.ExportJVMInfo }), show: showBool(func(c *Config) *bool { return &c.Metrics.ExportJVMInfo }),
	},
}

// The classes that every ZooKeeper has, by the end of their names: metrics for mntr, for nobody, and for Prometheus too.
const (
	defaultProvider    = ".DefaultMetricsProvider"
	nullProvider       = ".NullMetricsProvider"
	prometheusProvider = ".PrometheusMetricsProvider"
)

// Null tells whether nothing is to be measured.
func (m Metrics) Null() bool { return strings.HasSuffix(m.ClassName, nullProvider) }

// Prometheus tells whether metrics are to be served on Host and Port.
func (m Metrics) Prometheus() bool { return strings.HasSuffix(m.ClassName, prometheusProvider) }

// setMetricsProvider refuses a class that cannot be loaded, as ZooKeeper does.
func setMetricsProvider(c *Config, v string) (string, error) {
	c.Metrics.ClassName = v
	if v == "" || strings.HasSuffix(v, defaultProvider) || c.Metrics.Null() || c.Metrics.Prometheus() {
		return "", nil
	}
	return "", fmt.Errorf("metrics provider class was not found: %s", shown(v))
}

func adminDefaults() Admin {
	return Admin{
		Enabled: true, Address: "0.0.0.0", Port: 8080, CommandURL: "/commands", IdleTimeoutMs: 30000,
		RateLimitMs: 300000, SnapshotEnabled: true, RestoreEnabled: true,
	}
}

// setAdminEnabled takes only the literal false for a no.
func setAdminEnabled(c *Config, v string) (string, error) {
	c.Admin.Enabled = v != "false"
	if c.Admin.Enabled && v != "true" {
		return fmt.Sprintf("%q counts as true, as in ZooKeeper; only false means false", shown(v)), nil
	}
	return "", nil
}
