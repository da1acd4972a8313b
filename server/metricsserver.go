package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"
)

// metricsServer serves the metrics to Prometheus by HTTP.
type metricsServer struct {
	listener net.Listener
	http     http.Server
	exporter exporter
	gatherer prometheus.Gatherer
	log      *zap.Logger
	scrapes  chan struct{} // one for each scrape that is being answered
}

// MetricsAddr returns the address of the port on which /metrics is served, nil if it is not.
func (s *Server) MetricsAddr() net.Addr {
	if s.metricsServer == nil {
		return nil
	}
	return s.metricsServer.listener.Addr()
}

// listenMetrics binds the port for Prometheus, if metricsProvider.className asks for that.
func (s *Server) listenMetrics() error {
	cfg := &s.cfg.Metrics
	if !cfg.Prometheus() {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port)))
	if err != nil {
		return &StartError{Stage: StageMetricsPort, Err: fmt.Errorf("Cannot start /metrics server (metricsProvider.httpHost, metricsProvider.httpPort): %w", err)}
	}
	registry := prometheus.NewRegistry()
	m := &metricsServer{listener: limitConns(l, scrapeConnsMax), exporter: exporter{s: s}, gatherer: registry, log: s.log, scrapes: make(chan struct{}, scrapesMax)}
	registry.MustRegister(&m.exporter)
	if cfg.ExportJVMInfo {
		registry.MustRegister(&runtimeExporter{s.untouchedBytes}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	quiet, err := zap.NewStdLogAt(s.log, zap.DebugLevel)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", m)
	m.http = http.Server{
		Handler: mux, ReadTimeout: scrapeReadTime, WriteTimeout: scrapeWriteTime, IdleTimeout: scrapeIdleTime,
		MaxHeaderBytes: scrapeHeaderBytesMax, ErrorLog: quiet,
	}
	s.metricsServer = m
	s.log.Info("serving /metrics for Prometheus", zap.Stringer("address", l.Addr()))
	return nil
}

// start answers scrapes from now on.
func (m *metricsServer) start(s *Server) {
	s.spawn(func() {
		if err := m.http.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("/metrics is not served any more; restart the server to have it back", zap.Error(err))
		}
	})
	s.spawn(func() {
		for s.pause(windowStep) {
			m.exporter.window.step(s.summaries())
		}
	})
}

// close ends the port. A scrape that is being answered gets a moment; afterwards none runs.
func (m *metricsServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeEndTime)
	defer cancel()
	if m.http.Shutdown(ctx) != nil {
		_ = m.http.Close()
	}
	m.listener.Close() // it may never have been served
}

// ServeHTTP answers a scrape with the text form of version 0.0.4, whatever else the client would take: what it reads is the
// same as from ZooKeeper. name[] chooses metrics by name, and may be repeated.
func (m *metricsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	select {
	case m.scrapes <- struct{}{}:
		defer func() { <-m.scrapes }()
	default:
		http.Error(w, "too many scrapes at a time", http.StatusServiceUnavailable)
		return
	}
	families, err := m.gatherer.Gather()
	if err != nil {
		m.log.Error("some metrics cannot be shown; please report this", zap.Error(err))
	}
	names := r.URL.Query()["name[]"]
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, f := range families {
		if len(names) > 0 && !slices.Contains(names, f.GetName()) {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return // the client has gone
		}
	}
}

// limitConns lets no more than max connections be open at a time. Others wait until one of them ends.
func limitConns(l net.Listener, max int) net.Listener {
	return &limitedListener{Listener: l, room: make(chan struct{}, max), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	room   chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener].
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitedConn{Conn: c, l: l}, nil
}

// Close implements [net.Listener].
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	l    *limitedListener
	once sync.Once
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.once.Do(func() { <-c.l.room })
	return c.Conn.Close()
}

var _ http.Handler = (*metricsServer)(nil)
