package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/conf"
	"zabra/server"
	"zabra/wire"
)

func TestMetricsPort(t *testing.T) {
	s := startShell(t, shellConfig(t, withPrometheus))
	addr := s.MetricsAddr().String()
	ask := func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, nil)
		require.NoError(t, err)
		req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/metrics", 200}, {"POST", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"TRACE", "/metrics", 405}, {"PUT", "/metrics", 405},
		{"GET", "/", 404}, {"GET", "/metrics/x", 404}, {"GET", "/debug/pprof/", 404},
	} {
		status, body := ask(c.method, c.path)
		require.Equal(t, c.status, status, "%s %s", c.method, c.path)
		require.Equal(t, c.method == "HEAD", len(body) == 0, "%s %s", c.method, c.path)
	}
	_, body := ask("GET", "/metrics?name[]=znode_count&name[]=fsynctime&name[]=nothing")
	require.Regexp(t, `^# HELP fsynctime .*\n# TYPE fsynctime summary\nfsynctime\{quantile="0\.5"\} \S+\nfsynctime_sum \S+\nfsynctime_count \d+\n`+
		`# HELP znode_count .*\n# TYPE znode_count gauge\nznode_count 5\n$`, body)
	_, body = ask("GET", "/metrics")
	require.NotContains(t, body, "zk_znode_count")
	require.NotContains(t, body, "commit_count_total")
	require.NotRegexp(t, `(?m)^\w+_created[ {]`, body)
	require.Contains(t, body, "jvm_pause_time_ms{quantile=\"0.99\"} NaN\n")
}

func TestMetricsWithoutTheRuntime(t *testing.T) {
	s := startShell(t, shellConfig(t, withPrometheus, func(cfg *conf.Config) { cfg.Metrics.ExportJVMInfo = false }))
	page := scrape(t, s.MetricsAddr().String(), "")
	require.Contains(t, page, "znode_count")
	for name := range page {
		require.False(t, strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "jvm_") && name != "jvm_pause_time_ms", name)
	}
}

// A port that is in use keeps the server from starting, and leaves nothing behind.
func TestMetricsPortInUse(t *testing.T) {
	before := goleak.IgnoreCurrent()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := shellConfig(t, withPrometheus, func(cfg *conf.Config) { cfg.Metrics.Port = l.Addr().(*net.TCPAddr).Port })
	_, err = server.New(cfg, server.Options{})
	var start *server.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, server.StageMetricsPort, start.Stage)
	require.ErrorContains(t, err, "Cannot start /metrics server")
	require.ErrorContains(t, err, fmt.Sprint(cfg.Metrics.Port))
	require.NoError(t, l.Close())
	s, err := server.New(cfg, server.Options{}) // the data directory and the client port are free again
	require.NoError(t, err)
	require.NoError(t, s.Close())
	goleak.VerifyNone(t, before)
}

// The end of the server ends the port, with connections to it open, and no goroutine is left.
func TestMetricsPortEndsWithTheServer(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := startShell(t, shellConfig(t, withPrometheus))
	addr := s.MetricsAddr().String()
	idle, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	half, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	_, err = half.Write([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	_, err = half.Read(make([]byte, 1))
	require.NoError(t, err)
	s.shutdown()
	for _, c := range []net.Conn{idle, half} {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(shellWaitMax)))
		_, err := io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, net.ErrClosed)
		require.NoError(t, c.Close())
	}
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// More connections than the port takes wait; they do not keep the server from its clients.
func TestMetricsPortHasRoomForSoMany(t *testing.T) {
	s := startShell(t, shellConfig(t, withPrometheus))
	addr := s.MetricsAddr().String()
	var held []net.Conn
	for range server.ScrapeConnsMax {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = c.Write([]byte("GET /metrics?name[]=has_leader HTTP/1.1\r\nHost: x\r\n\r\n"))
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(shellWaitMax)))
		_, err = c.Read(make([]byte, 1)) // it is one of those
		require.NoError(t, err)
		held = append(held, c)
	}
	answered := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + addr + "/metrics?name[]=has_leader")
		if err == nil {
			resp.Body.Close()
		}
		answered <- err
	}()
	c := clientOf(t, s.Addr().String())
	_, err := c.Create(t.Context(), "/a", nil, wire.OpenACL, wire.FlagPersistent)
	require.NoError(t, err)
	select {
	case err := <-answered:
		require.Fail(t, "one more than there is room for was answered", "%v", err)
	default:
	}
	for _, c := range held {
		require.NoError(t, c.Close())
	}
	require.NoError(t, <-answered)
	http.DefaultClient.CloseIdleConnections()
}
