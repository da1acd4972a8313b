package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const deployDir = "../deploy"

// dashboard is what is looked at in the dashboard.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Query                  any
		}
	}
	Annotations struct{ List []struct{ Expr string } }
	Panels      []struct {
		ID         int
		Type       string
		Title      string
		Datasource struct{ Type, UID string }
		GridPos    struct{ H, W, X, Y int }
		Targets    []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
}

// alertRules is what is looked at in the alert rules.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// requireDeployed looks for every metric of the dashboard and the alert rules in deploy/, in the pages of a leader and a
// follower, with the type that fits its use.
func requireDeployed(t *testing.T, leader, follower map[string]*dto.MetricFamily) {
	t.Helper()
	exprs := append(dashboardExprs(t), alertExprs(t)...)
	require.Greater(t, len(exprs), 60)
	seen := map[string]bool{}
	for _, expr := range exprs {
		for _, m := range metricsOf(expr) {
			seen[m.name] = true
			if m.name == "up" {
				continue
			}
			if slices.Contains([]string{"quota_bytes_usage_per_namespace", "quota_bytes_limit_per_namespace", "quota_count_usage_per_namespace",
				"quota_count_limit_per_namespace", "quota_exceeded_error_per_namespace"}, m.name) {
				continue // these need a quota: see TestQuotaMetrics
			}
			f, part := familyOf(leader, m.name)
			require.NotNil(t, f, "%s of %s is not exported", m.name, expr)
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				require.True(t, m.rate, "%s is a counter: %s", m.name, expr)
			case dto.MetricType_GAUGE:
				// The two of packets are gauges in ZooKeeper as well, though they grow but for srst.
				require.True(t, !m.rate || m.name == "packets_received" || m.name == "packets_sent", "%s is a gauge: %s", m.name, expr)
			case dto.MetricType_SUMMARY, dto.MetricType_HISTOGRAM:
				require.Equal(t, m.rate, part != "", "%s in %s", m.name, expr)
			}
			if !slices.Contains(zkLeaderGauges, m.name) && !slices.Contains(zkLabelled, f.GetName()) {
				f, _ := familyOf(follower, m.name)
				require.NotNil(t, f, "%s of %s is not exported by a follower", m.name, expr)
			}
		}
	}
	for _, name := range []string{"has_leader", "leader_changes", "fsync_seconds_bucket"} {
		require.True(t, seen[name], name)
	}
}

// dashboardExprs checks how the dashboard hangs together, and returns its queries.
func dashboardExprs(t *testing.T) (exprs []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployDir, "grafana", "zabra.json"))
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Type == "query" {
			exprs = append(exprs, regexp.MustCompile(`^label_values\((.*), \w+\)$`).ReplaceAllString(v.Definition, "$1"))
		}
	}
	require.Equal(t, []string{"datasource", "job", "instance"}, names)
	for _, a := range d.Annotations.List {
		exprs = append(exprs, a.Expr)
	}
	ids := map[int]bool{}
	var top []string
	for _, p := range d.Panels {
		require.False(t, ids[p.ID])
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			continue
		}
		if p.Type == "stat" {
			top = append(top, p.Title)
		}
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			exprs = append(exprs, target.Expr)
		}
	}
	require.Equal(t, []string{"Has a leader", "Leader changes, last hour", "Sync of the log, p99"}, top)
	return exprs
}

// alertExprs returns the queries of the alert rules. Each rule tells what to do.
func alertExprs(t *testing.T) (exprs []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployDir, "prometheus", "alerts.yml"))
	require.NoError(t, err)
	var rules alertRules
	require.NoError(t, yaml.Unmarshal(text, &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			require.Regexp(t, `^Zabra\w+$`, r.Alert)
			require.NotEmpty(t, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.NotEmpty(t, r.Annotations["description"], r.Alert)
			exprs = append(exprs, r.Expr)
		}
	}
	return exprs
}

// usedMetric is a metric in a query; rate says that a function of counters is applied to it.
type usedMetric struct {
	name string
	rate bool
}

var (
	matchers   = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|"[^"]*"`)
	groupings  = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	ofCounters = regexp.MustCompile(`\b(rate|irate|increase|changes)\s*\(\s*$`)
	isOperator = regexp.MustCompile(`^(and|or|unless|bool|offset)$`)
	isCall     = regexp.MustCompile(`^\s*\(`)
)

// metricsOf finds the names of metrics in a query.
func metricsOf(expr string) (list []usedMetric) {
	expr = groupings.ReplaceAllString(matchers.ReplaceAllString(expr, ""), "")
	for _, at := range identifier.FindAllStringIndex(expr, -1) {
		name := expr[at[0]:at[1]]
		if isOperator.MatchString(name) || isCall.MatchString(expr[at[1]:]) {
			continue
		}
		list = append(list, usedMetric{name, ofCounters.MatchString(expr[:at[0]])})
	}
	return list
}

func TestMetricsOfAQuery(t *testing.T) {
	require.Equal(t, []usedMetric{{"a_bucket", true}}, metricsOf(`histogram_quantile(0.99, sum by (le, instance) (rate(a_bucket{job=~"$job"}[5m]))) > 0.1`))
	require.Equal(t, []usedMetric{{"a", false}, {"b", false}}, metricsOf(`clamp_max(a{}, 1) or clamp_max(b{x="c"}, 0)`))
	require.Equal(t, []usedMetric{{"q", false}, {"s", false}}, metricsOf(`q - 1 - s > 0`))
}

// The scrape configuration names the files that are there, and the port that is ours unless told otherwise.
func TestScrapeExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployDir, "prometheus", "prometheus.yml"))
	require.NoError(t, err)
	var file struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			MetricsPath   string `yaml:"metrics_path"`
			StaticConfigs []struct{ Targets []string }
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, name := range file.RuleFiles {
		require.FileExists(t, filepath.Join(deployDir, "prometheus", name))
	}
	require.Len(t, file.ScrapeConfigs, 1)
	require.Equal(t, "/metrics", file.ScrapeConfigs[0].MetricsPath)
	require.Contains(t, string(text), "#   metricsProvider.className="+prometheusClass+"\n#   metricsProvider.httpPort=7000\n")
	rules, err := os.ReadFile(filepath.Join(deployDir, "prometheus", "alerts.yml"))
	require.NoError(t, err)
	require.Contains(t, string(rules), `up{job="`+file.ScrapeConfigs[0].JobName+`"}`)
}
