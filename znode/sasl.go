package znode

import (
	"slices"
	"strings"

	"zabra/wire"
)

const (
	// SchemeSASL is the scheme of identities that come from a SASL exchange.
	SchemeSASL     = "sasl"
	schemeEnsemble = "ensemble"
	// saslSuper is the user whom every entry of the scheme sasl lets in.
	saslSuper = "super"
)

// SASLProvider returns the scheme sasl, whose identities are users that a SASL exchange has logged in. Entries that name
// anyUser let in every such user; "" names nobody.
func SASLProvider(anyUser string) Provider { return saslProvider{anyUser} }

// SuperID is the identity that may do everything.
func SuperID() wire.ID { return wire.ID{Scheme: schemeSuper} }

type saslProvider struct{ anyUser string }

func (saslProvider) Scheme() string      { return SchemeSASL }
func (saslProvider) Authenticated() bool { return true }

// ValidID takes every name without an @, and those of Kerberos: name@realm and name/host@realm.
func (saslProvider) ValidID(id string) bool {
	name, realm, isPrincipal := strings.Cut(id, "@")
	return !isPrincipal || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "/@")
}

func (p saslProvider) Matches(identity, aclID string) bool {
	return identity == aclID || identity == saslSuper || p.anyUser != "" && aclID == p.anyUser
}

// Authenticate refuses: an auth request cannot log in by SASL.
func (saslProvider) Authenticate(string, []byte) ([]wire.ID, wire.Code) {
	return nil, wire.CodeAuthFailed
}

func (saslProvider) User(id string) string { return id }

// EnsembleProvider returns the scheme ensemble. It makes nobody anybody: a client names the ensemble that it means to talk to,
// and is refused if that has none of the names. A client that names none passes, and without names all do.
func EnsembleProvider(names []string) Provider { return ensembleProvider{slices.Clone(names)} }

type ensembleProvider struct{ names []string }

func (ensembleProvider) Scheme() string              { return schemeEnsemble }
func (ensembleProvider) Authenticated() bool         { return false }
func (ensembleProvider) ValidID(string) bool         { return false }
func (ensembleProvider) Matches(string, string) bool { return false }
func (ensembleProvider) User(id string) string       { return id }

func (p ensembleProvider) Authenticate(_ string, token []byte) ([]wire.ID, wire.Code) {
	if len(token) == 0 || len(p.names) == 0 || slices.Contains(p.names, string(token)) {
		return nil, wire.CodeOK
	}
	return nil, wire.CodeAuthFailed
}
