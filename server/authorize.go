package server

import (
	"net/http"
	"strings"

	"zabra/internal/certs"
	"zabra/server/admin"
	"zabra/wire"
	"zabra/znode"
)

// The schemes by which who asks for a command of the admin server can prove who that is.
const (
	schemeDigest = "digest"
	schemeIP     = "ip"
	schemeX509   = "x509"
)

// unauthorized refuses a request whose header Authorization does not give somebody who has all permissions on the root
// node, in ZooKeeper's words; nil lets it pass. The header is a scheme, and for digest a blank and "user:password".
func (s *Server) unauthorized(r *admin.Request) *admin.Response {
	header := r.Header.Get("Authorization")
	if header == "" {
		return refusedAction(http.StatusUnauthorized, "Auth info is missing for the command")
	}
	ids := s.identify(strings.Fields(header), r)
	if len(ids) == 0 {
		return refusedAction(http.StatusUnauthorized, "Not authenticated")
	}
	if !s.ownsAll(ids) {
		return refusedAction(http.StatusForbidden, "Not authorized")
	}
	return nil
}

// unproven refuses what unauthorized does, and who has the permissions only because everybody has them, unless the request
// comes from this machine. From there no header is needed as long as that is so.
func (s *Server) unproven(r *admin.Request) *admin.Response {
	open := s.ownsAll(nil)
	if open && r.FromThisMachine() {
		return nil
	}
	if refused := s.unauthorized(r); refused != nil {
		return refused
	}
	if open {
		return refusedAction(http.StatusForbidden, "everybody has all permissions on the node /, so that they prove nothing: "+
			"give it an ACL of your own, or ask from the machine of the server")
	}
	return nil
}

// identify returns the identities that the header's words give; none if they prove nothing.
func (s *Server) identify(words []string, r *admin.Request) []wire.ID {
	switch {
	case len(words) == 2 && words[0] == schemeDigest:
		return s.login(schemeDigest, []byte(words[1]), r)
	case len(words) > 2 || len(words) == 0:
		return nil
	case words[0] == schemeIP:
		return s.login(schemeIP, nil, r)
	case words[0] == schemeX509:
		return s.certified(r)
	}
	return nil
}

func (s *Server) login(scheme string, token []byte, r *admin.Request) []wire.ID {
	remote := znode.RemoteID(r.Remote.Addr()).ID
	ids, code := s.treeConfig.Auth.Login([]byte(scheme), token, remote)
	if code != wire.CodeOK {
		return nil
	}
	return ids
}

// certified is who a client's certificate names, if it was verified.
func (s *Server) certified(r *admin.Request) []wire.ID {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	if s.tls.clients == nil || s.tls.clients.Trusts(r.TLS.PeerCertificates) != nil {
		return nil // it was let in as another server would be, which says nothing about clients
	}
	subject, err := certs.Subject(r.TLS.PeerCertificates[0])
	if err != nil {
		return nil
	}
	return s.tls.x509.IDs(subject)
}

// ownsAll reports whether somebody has every permission on the root node.
func (s *Server) ownsAll(ids []wire.ID) bool {
	const shard = 0
	tree := s.replica.Tree()
	tree.RLock(shard)
	root, _ := tree.Find([]byte(znode.RootPath))
	acl := tree.ACL(root)
	tree.RUnlock(shard)
	for perm := int32(1); perm <= wire.PermAll; perm <<= 1 {
		if !s.treeConfig.Auth.Allows(acl, perm, ids) {
			return false
		}
	}
	return true
}
