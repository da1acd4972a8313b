package znode

import (
	"crypto"
	_ "crypto/md5" // the digests that DigestAlg can name
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"zabra/jute"
	"zabra/wire"
)

// Provider knows one scheme of identities. Implementations must be safe for concurrent use; Matches is called for
// every checked request and must not allocate.
type Provider interface {
	// Scheme is the name under which ACL entries and auth requests refer to the provider.
	Scheme() string
	// Authenticated reports whether identities of this scheme count when an ACL entry of scheme auth is expanded.
	Authenticated() bool
	// ValidID reports whether id may stand in an ACL entry of this scheme.
	ValidID(id string) bool
	// Matches reports whether a connection's identity is the one, or one of those, that an ACL entry names.
	Matches(identity, aclID string) bool
	// Authenticate answers an auth request from the peer with address remote (as RemoteID writes it). The token is nil if
	// it is null. It returns the identities to add, or the code to refuse with; a refusal closes the connection.
	Authenticate(remote string, token []byte) ([]wire.ID, wire.Code)
	// User is the name of an identity as whoAmI shows it.
	User(id string) string
}

// AuthConfig configures who may do what.
type AuthConfig struct {
	// SkipACL grants everything to everybody.
	SkipACL bool
	// SuperDigest is the digest identity ("user:base64hash") that makes its owner the superuser; empty for none.
	SuperDigest string
	// DigestDisabled takes away the digest scheme, for logins as well as for ACL entries.
	DigestDisabled bool
	// DigestAlg is the name of the hash of the digest scheme as Java spells it, in any case; empty means SHA1.
	DigestAlg string
	// Providers are schemes besides ip and digest, such as x509 and sasl.
	Providers []Provider
}

// Auth checks permissions against ACLs and logins against the configured schemes. It is immutable and safe for
// concurrent use.
type Auth struct {
	skipACL   bool
	providers []Provider // few: a scan beats a map
}

// NewAuth returns the checks that cfg asks for. It fails if the hash is unknown or a scheme occurs twice or is one that
// the server keeps for itself.
func NewAuth(cfg AuthConfig) (*Auth, error) {
	a := &Auth{skipACL: cfg.SkipACL, providers: []Provider{ipProvider{}}}
	hash, err := digestHash(cfg.DigestAlg)
	if err != nil {
		return nil, err
	}
	if !cfg.DigestDisabled {
		a.providers = append(a.providers, digestProvider{hash: hash, super: cfg.SuperDigest})
	}
	for _, p := range cfg.Providers {
		switch s := p.Scheme(); {
		case s == schemeWorld, s == schemeAuth, s == schemeSuper:
			return nil, fmt.Errorf("auth provider: scheme %q is reserved", s)
		case a.provider(s) != nil:
			return nil, fmt.Errorf("auth provider: scheme %q is configured twice", s)
		}
		a.providers = append(a.providers, p)
	}
	return a, nil
}

func (a *Auth) provider(scheme string) Provider {
	for _, p := range a.providers {
		if p.Scheme() == scheme {
			return p
		}
	}
	return nil
}

// Login answers an auth request: scheme and token as the client sent them (nil for null, which scheme ip takes), remote as
// RemoteID writes it.
// It returns the identities that the connection gains, or CodeAuthFailed (or what else the provider refuses with). The
// server closes the connection after a refusal.
func (a *Auth) Login(scheme, token []byte, remote string) ([]wire.ID, wire.Code) {
	if scheme == nil {
		return nil, wire.CodeAuthFailed
	}
	p := a.provider(string(scheme))
	if p == nil {
		return nil, wire.CodeAuthFailed
	}
	return p.Authenticate(remote, token)
}

// AddIDs returns have with those of more that it lacks. It never changes have, which requests in flight may still
// refer to, and returns it as it is if nothing is new.
func AddIDs(have, more []wire.ID) []wire.ID {
	for _, id := range more {
		if !slices.Contains(have, id) {
			have = append(have[:len(have):len(have)], id)
		}
	}
	return have
}

// WhoAmI describes the identities of a connection for a whoAmI reply. The superuser has an empty name.
func (a *Auth) WhoAmI(ids []wire.ID) []wire.ClientInfo {
	infos := make([]wire.ClientInfo, 0, len(ids))
	for _, id := range ids {
		info := wire.ClientInfo{Scheme: id.Scheme}
		if p := a.provider(id.Scheme); p != nil {
			info.User = p.User(id.ID)
		}
		infos = append(infos, info)
	}
	return infos
}

// digestHashes are the names that Java knows for hashes, in upper case.
var digestHashes = map[string]crypto.Hash{
	"MD5": crypto.MD5, "SHA": crypto.SHA1, "SHA1": crypto.SHA1, "SHA-1": crypto.SHA1,
	"SHA-224": crypto.SHA224, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512,
	"SHA224": crypto.SHA224, "SHA256": crypto.SHA256, "SHA384": crypto.SHA384, "SHA512": crypto.SHA512,
	"SHA-512/224": crypto.SHA512_224, "SHA-512/256": crypto.SHA512_256,
	"SHA3-224": crypto.SHA3_224, "SHA3-256": crypto.SHA3_256, "SHA3-384": crypto.SHA3_384, "SHA3-512": crypto.SHA3_512,
}

func digestHash(name string) (crypto.Hash, error) {
	if name == "" {
		return crypto.SHA1, nil
	}
	h, ok := digestHashes[strings.ToUpper(name)]
	if !ok {
		return 0, fmt.Errorf("digest authentication: unknown hash algorithm %q", name)
	}
	return h, nil
}

// digestProvider knows users by name and password. The identity is "user:" and the Base64 of the hash of "user:password".
type digestProvider struct {
	hash  crypto.Hash
	super string
}

func (digestProvider) Scheme() string      { return schemeDigest }
func (digestProvider) Authenticated() bool { return true }

// ValidID wants exactly two parts between colons once empty parts at the end are dropped; the first may be empty.
func (digestProvider) ValidID(id string) bool {
	return strings.Count(strings.TrimRight(id, ":"), ":") == 1
}

func (digestProvider) Matches(identity, aclID string) bool { return identity == aclID }

// Authenticate accepts every token: a wrong password merely gives an identity that no ACL names. As in ZooKeeper the
// token is text, so malformed UTF-8 is replaced before it is hashed.
func (p digestProvider) Authenticate(_ string, token []byte) ([]wire.ID, wire.Code) {
	if token == nil {
		return nil, wire.CodeAuthFailed
	}
	text := decodeText(token)
	h := p.hash.New()
	h.Write(text)
	user, _, _ := strings.Cut(string(text), ":")
	id := user + ":" + base64.StdEncoding.EncodeToString(h.Sum(nil))
	ids := []wire.ID{{Scheme: schemeDigest, ID: id}}
	if p.super != "" && id == p.super {
		ids = append(ids, wire.ID{Scheme: schemeSuper})
	}
	return ids, wire.CodeOK
}

// decodeText reads b as Java reads a string, with each malformed sequence replaced.
func decodeText(b []byte) []byte {
	var enc jute.Encoder
	enc.Buffer(b)
	d := jute.NewDecoder(enc.Bytes(), max(len(b), 1))
	return d.UString()
}

func (digestProvider) User(id string) string {
	user, _, _ := strings.Cut(id, ":")
	return user
}
