package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"zabra/server/admin"
)

// adminServer is the HTTP server for operators and probes. It serves while there is no quorum, too, and while the server
// ends, so that probes can tell the one from the other. Whatever is wrong with it is told in the log and hurts nothing else.
type adminServer struct {
	s        *Server
	listener *adminListener
	http     *http.Server
}

// listenAdmin binds the port of the admin server. Nothing is served yet.
func (s *Server) listenAdmin() {
	c := &s.cfg.Admin
	if !c.Enabled {
		return
	}
	l, err := s.bindAdmin()
	if err != nil {
		s.log.Warn(fmt.Sprintf("Problem starting AdminServer on address %s, port %d and command URL %s; the server goes on without it. "+
			"See to it that admin.serverAddress and admin.serverPort can be used, or set admin.enableServer=false", c.Address, c.Port, c.CommandURL), zap.Error(err))
		return
	}
	a := &adminServer{s: s, listener: l}
	errorLog, _ := zap.NewStdLogAt(s.log, zap.DebugLevel) // the level is one that there is
	a.http = &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: adminHeaderTime, MaxHeaderBytes: adminHeaderBytesMax,
		IdleTimeout: time.Duration(c.IdleTimeoutMs) * time.Millisecond, ErrorLog: errorLog,
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2: nobody asks for it here
		ConnState:    a.connState,
	}
	s.admin = a
}

// bindAdmin opens the port, for plain requests, for encrypted ones, or for both.
func (s *Server) bindAdmin() (*adminListener, error) {
	c := &s.cfg.Admin
	l := &adminListener{mode: adminPlain, ready: make(chan net.Conn), quit: make(chan struct{}), open: make(map[*adminConn]struct{})}
	if c.ForceHTTPS || c.PortUnification {
		mode, err := s.adminMode()
		if err != nil {
			return nil, err
		}
		l.mode = mode
		l.config = (&adminTLS{source: s.adminTLS, needClientAuth: c.NeedClientAuth}).server()
		l.detection = time.Duration(s.cfg.Security.Quorum.DetectionTimeoutMs) * time.Millisecond
	}
	tcp, err := net.Listen("tcp", net.JoinHostPort(c.Address, strconv.Itoa(c.Port)))
	if err != nil {
		return nil, err
	}
	l.tcp = tcp
	return l, nil
}

// adminMode looks whether there is what encryption needs. Without it, a port for both is one for plain requests.
func (s *Server) adminMode() (adminMode, error) {
	forced := s.cfg.Admin.ForceHTTPS
	switch {
	case s.adminTLS == nil && forced:
		return 0, errors.New("admin.forceHttps needs a key store, see ssl.quorum.keyStore.location")
	case s.adminTLS == nil:
		s.log.Warn("admin.portUnification without a key store: the admin server takes plain requests only; see ssl.quorum.keyStore.location")
		return adminPlain, nil
	}
	if _, err := s.adminTLS(); err != nil {
		return 0, fmt.Errorf("keys and certificates: %w", err)
	}
	if forced {
		return adminEncrypted, nil
	}
	return adminUnified, nil
}

// start begins to serve.
func (a *adminServer) start() {
	c := &a.s.cfg.Admin
	addr := a.listener.Addr().(*net.TCPAddr)
	a.s.log.Info(fmt.Sprintf("Started AdminServer on address %s, port %d and command URL %s", c.Address, addr.Port, c.CommandURL))
	a.s.spawn(func() { a.listener.acceptLoop(a.s) })
	a.s.spawn(func() { _ = a.http.Serve(a.listener) }) // it ends with the listener
}

// close cuts all connections. The goroutines end soon after; the server waits for them.
func (a *adminServer) close() {
	_ = a.listener.Close()
	_ = a.http.Close()
}

// handler is what answers.
func (a *adminServer) handler() http.Handler {
	commands := slices.Concat(a.s.adminCommands(), a.s.actionCommands())
	h := admin.Handler(source{a.s}, commands, admin.HandlerOptions{
		CommandURL: a.s.cfg.Admin.CommandURL, Alive: a.s.alive, Ready: a.s.ready, StallTime: adminStallTime,
		Panicked: func(command string, value any, stack []byte) {
			a.s.log.Error("an admin command failed by a defect of this program; the server goes on. Please report the lines of the stack",
				zap.String("command", printable(command)), zap.Any("panic", value), zap.ByteString("stack", stack))
		},
	})
	if a.listener.mode != adminUnified {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			a.s.meter.insecureAdmin.Add(1)
		}
		h.ServeHTTP(w, r)
	})
}

// connState follows the connections. Each has a goroutine of the HTTP server from the first to the last state; the server
// waits for it as for its own.
func (a *adminServer) connState(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		a.s.running.Add(1)
	case http.StateActive:
		a.listener.setBusy(c, true)
	case http.StateIdle:
		a.listener.setBusy(c, false)
	case http.StateClosed:
		a.s.running.Done()
	}
}

// AdminAddr returns the address of the admin server, nil if there is none.
func (s *Server) AdminAddr() net.Addr {
	if s.admin == nil {
		return nil
	}
	return s.admin.listener.Addr()
}

// alive answers the probe of life: a process that only waits for its quorum is well.
func (s *Server) alive() (ok bool, why string) {
	select {
	case <-s.failed:
		return false, "failed"
	default:
		return true, ""
	}
}

// ready answers whether clients are served, and if not, how far the server is.
func (s *Server) ready() (ok bool, why string) {
	if ok, why = s.alive(); !ok {
		return false, why
	}
	switch {
	case s.isDraining():
		return false, "stopping"
	case s.isServing():
		return true, ""
	case s.member != nil:
		return false, s.member.status.Load().Phase.String()
	}
	return false, "starting"
}
