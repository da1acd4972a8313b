package znode

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"

	"zabra/wire"
)

const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeDigest = "digest"
	schemeIP     = "ip"
	schemeSuper  = "super"
	idAnyone     = "anyone"
)

// ACLList is an access control list as a node carries it. It is immutable, so nodes with equal lists share one, and an
// event can carry it past the node's end.
type ACLList struct {
	entries []wire.ACL
	open    bool
}

// NewACLList makes a list of entries, which it keeps: the caller must not change them afterwards.
func NewACLList(entries []wire.ACL) *ACLList {
	return &ACLList{entries: entries, open: len(entries) == 1 && entries[0] == wire.ACL{Perms: wire.PermAll, Scheme: schemeWorld, ID: idAnyone}}
}

// Entries returns the list's entries in their order; they must not be changed.
func (l *ACLList) Entries() []wire.ACL { return l.entries }

// Open reports whether the list is exactly world:anyone with all permissions.
func (l *ACLList) Open() bool { return l.open }

// Allows reports whether somebody with the identities ids has at least one of the permissions in perm on a node with
// list l. A missing or empty list allows everything, as does the identity of scheme super. It does not allocate.
func (a *Auth) Allows(l *ACLList, perm int32, ids []wire.ID) bool {
	if a.skipACL || l == nil || len(l.entries) == 0 || l.open && perm&wire.PermAll != 0 {
		return true
	}
	for i := range ids {
		if ids[i].Scheme == schemeSuper {
			return true
		}
	}
	for i := range l.entries {
		if e := &l.entries[i]; e.Perms&perm != 0 && a.entryMatches(e, ids) {
			return true
		}
	}
	return false
}

func (a *Auth) entryMatches(e *wire.ACL, ids []wire.ID) bool {
	if e.NullScheme || e.NullID {
		return false
	}
	if e.Scheme == schemeWorld && e.ID == idAnyone {
		return true
	}
	p := a.provider(e.Scheme)
	if p == nil {
		return false
	}
	for i := range ids {
		if ids[i].Scheme == e.Scheme && p.Matches(ids[i].ID, e.ID) {
			return true
		}
	}
	return false
}

// Fix turns the list of a create or setACL request into the one to be stored. Exact duplicates go, the first stays;
// then each entry of scheme auth becomes one entry for every authenticated identity in ids. (Thus auth beside an explicit
// copy of the same identity leaves two equal entries.) It returns CodeInvalidACL for an empty list, a null or unknown
// scheme, an id that the scheme's provider refuses, auth without an authenticated identity, and more than
// aclExpandedEntriesMax entries made from auth; CodeMarshalling for a null id, except for auth where the id means nothing.
// It does not change acl.
func (a *Auth) Fix(acl []wire.ACL, ids []wire.ID) ([]wire.ACL, wire.Code) {
	if len(acl) == 0 {
		return nil, wire.CodeInvalidACL
	}
	if &acl[0] == &wire.OpenACL[0] {
		return acl, wire.CodeOK
	}
	fixed := make([]wire.ACL, 0, len(acl))
	var authenticated []wire.ACL // what each entry of scheme auth becomes
	expanded := 0
	for _, e := range withoutDuplicates(acl) {
		if e.NullScheme {
			return nil, wire.CodeInvalidACL
		}
		if e.Scheme == schemeAuth {
			if authenticated == nil {
				authenticated = a.authenticated(ids)
			}
			if expanded += len(authenticated); len(authenticated) == 0 || expanded > aclExpandedEntriesMax {
				return nil, wire.CodeInvalidACL
			}
			for _, entry := range authenticated {
				entry.Perms = e.Perms
				fixed = append(fixed, entry)
			}
			continue
		}
		if code := a.validEntry(&e); code != wire.CodeOK {
			return nil, code
		}
		fixed = append(fixed, e)
	}
	return fixed, wire.CodeOK
}

// aclExpandedEntriesMax bounds what entries of scheme auth may become. A request of a megabyte with many of them, on a
// connection with many identities, would otherwise ask for gigabytes; no real list comes near it.
const aclExpandedEntriesMax = 16384

// aclScanEntriesMax is the longest list in which duplicates are looked for by comparing each with each. A request can
// hold tens of thousands of entries; those go through a map, so that nobody can stall the server with one request.
const aclScanEntriesMax = 32

// withoutDuplicates returns acl itself if no entry occurs twice, else a copy in which the first of equals stays.
func withoutDuplicates(acl []wire.ACL) []wire.ACL {
	if len(acl) <= aclScanEntriesMax {
		for i := range acl {
			if slices.Contains(acl[:i], acl[i]) {
				return appendDistinct(acl)
			}
		}
		return acl
	}
	return appendDistinct(acl)
}

func appendDistinct(acl []wire.ACL) []wire.ACL {
	seen := make(map[wire.ACL]struct{}, len(acl))
	distinct := make([]wire.ACL, 0, len(acl))
	for _, e := range acl {
		if _, ok := seen[e]; !ok {
			seen[e] = struct{}{}
			distinct = append(distinct, e)
		}
	}
	return distinct
}

// authenticated returns an entry for each identity that counts as authenticated, in the order in which ZooKeeper would
// store them. It is not nil.
func (a *Auth) authenticated(ids []wire.ID) []wire.ACL {
	added := []wire.ACL{}
	for _, id := range ids {
		if p := a.provider(id.Scheme); p != nil && p.Authenticated() {
			added = append(added, wire.ACL{Scheme: id.Scheme, ID: id.ID})
		}
	}
	if len(added) > 1 {
		buckets := uint32(javaBucketsMin)
		for uint32(len(ids))*4 >= buckets*3 {
			buckets *= 2
		}
		slices.SortStableFunc(added, func(x, y wire.ACL) int { return cmp.Compare(javaBucket(x, buckets), javaBucket(y, buckets)) })
	}
	return added
}

// A ZooKeeper connection keeps its identities in a Java hash set, and an expansion comes out in the order of the set's
// buckets. Nothing promises that order, but it is always the same, people compare lists as text, and it costs little to
// keep. (Identities that share a bucket keep the order of their logins, here as there as long as they are few.)
const (
	javaBucketsMin = 16
	javaHashSeed   = 17
	javaHashFactor = 37
	javaTextFactor = 31
)

func javaBucket(e wire.ACL, buckets uint32) uint32 {
	h := (javaHashSeed*javaHashFactor+javaTextHash(e.Scheme))*javaHashFactor + javaTextHash(e.ID)
	return (h ^ h>>16) & (buckets - 1)
}

// javaTextHash is the hash of a string as Java defines it, over UTF-16 units.
func javaTextHash(s string) uint32 {
	h := uint32(0)
	for _, unit := range utf16.Encode([]rune(s)) {
		h = h*javaTextFactor + uint32(unit)
	}
	return h
}

func (a *Auth) validEntry(e *wire.ACL) wire.Code {
	switch p := a.provider(e.Scheme); {
	case e.Scheme == schemeWorld && !e.NullID && e.ID == idAnyone:
		return wire.CodeOK
	case e.Scheme == schemeWorld && e.NullID:
		return wire.CodeMarshalling
	case p == nil:
		return wire.CodeInvalidACL
	case e.NullID:
		return wire.CodeMarshalling
	case !p.ValidID(e.ID):
		return wire.CodeInvalidACL
	}
	return wire.CodeOK
}

// Mask returns the list as somebody without ADMIN may see it in a getACL reply: the password hash of every digest entry
// is replaced by "x". It returns acl itself if there is nothing to hide and never changes it.
func (a *Auth) Mask(acl []wire.ACL) []wire.ACL {
	masked := acl
	for i, e := range acl {
		if e.Scheme != schemeDigest || e.NullID {
			continue
		}
		if &masked[0] == &acl[0] {
			masked = append([]wire.ACL(nil), acl...)
		}
		user, _, _ := strings.Cut(e.ID, ":")
		masked[i].ID = user + ":x"
	}
	return masked
}
