package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"zabra/server/admin"
)

// Act runs a command as the admin server would: target is its name or an alias with parameters, body is what a POST carries.
func (s *Server) Act(target, authorization, body string) *admin.Response {
	return s.ActTLS(target, authorization, body, nil)
}

// ActTLS is Act over TLS.
func (s *Server) ActTLS(target, authorization, body string, state *tls.ConnectionState) *admin.Response {
	if body == "" {
		return s.act(actLocal, target, authorization, nil, state)
	}
	return s.act(actLocal, target, authorization, strings.NewReader(body), state)
}

// ActFrom is Act, asked for from somewhere else.
func (s *Server) ActFrom(remote, target, authorization string) *admin.Response {
	return s.act(remote, target, authorization, nil, nil)
}

// actLocal is on the machine of the server.
const actLocal = "127.0.0.1:5000"

// ActBody is Act with a body of any kind.
func (s *Server) ActBody(target, authorization string, body io.Reader) *admin.Response {
	return s.act(actLocal, target, authorization, body, nil)
}

func (s *Server) act(remote, target, authorization string, body io.Reader, state *tls.ConnectionState) *admin.Response {
	name, query, _ := strings.Cut(target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		panic(err)
	}
	r := &admin.Request{Method: http.MethodGet, Query: values, Header: http.Header{}, Remote: netip.MustParseAddrPort(remote), TLS: state}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	if body != nil {
		r.Method, r.Body = http.MethodPost, body
	}
	for _, c := range s.actionCommands() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if n == name {
				return c.Run(source{s}, r)
			}
		}
	}
	panic("no command " + name)
}

// TopRequests reads what top counts: whether a frame is a write, and its path.
func TopRequests(frame []byte) (write bool, path []byte, ok bool) { return requestPath(frame) }

// Surveying has the nodes looked through until release is called.
func (s *Server) Surveying() (release func()) {
	s.actions.top.surveying.Lock()
	return s.actions.top.surveying.Unlock
}
