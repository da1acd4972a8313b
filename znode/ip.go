package znode

import (
	"net/netip"
	"strconv"
	"strings"

	"zabra/wire"
)

// RemoteID is the identity that every connection begins with: the peer's address as Java writes it. IPv6 addresses have
// all eight groups, without zeros in front and without "::"; a scope follows behind '%'. An IPv4 address that arrives
// mapped into IPv6 is an IPv4 address.
func RemoteID(ip netip.Addr) wire.ID {
	return wire.ID{Scheme: schemeIP, ID: remoteText(ip)}
}

func remoteText(ip netip.Addr) string {
	ip = ip.Unmap()
	if !ip.Is6() {
		return ip.String()
	}
	b := make([]byte, 0, len("0123:4567:89ab:cdef:0123:4567:89ab:cdef%eth0"))
	for i, raw := 0, ip.As16(); i < len(raw); i += 2 {
		if i > 0 {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(raw[i])<<8|uint64(raw[i+1]), 16)
	}
	if zone := ip.Zone(); zone != "" {
		b = append(append(b, '%'), zone...)
	}
	return string(b)
}

// ipProvider knows peers by address. An ACL id is an address or a network, "address/bits".
type ipProvider struct{}

func (ipProvider) Scheme() string      { return schemeIP }
func (ipProvider) Authenticated() bool { return false }

func (ipProvider) ValidID(id string) bool {
	_, ok := parseNetwork(id)
	return ok
}

func (ipProvider) Matches(identity, aclID string) bool {
	network, ok := parseNetwork(aclID)
	if !ok {
		return false
	}
	address, _, _ := strings.Cut(identity, "%") // the scope is no part of the address
	peer, ok := parseAddress(address)
	return ok && network.Contains(peer)
}

func (ipProvider) Authenticate(remote string, _ []byte) ([]wire.ID, wire.Code) {
	return []wire.ID{{Scheme: schemeIP, ID: remote}}, wire.CodeOK
}

func (ipProvider) User(id string) string { return id }

// parseNetwork reads "address" or "address/bits". It does not allocate, as all of this section: every check of an ACL
// with entries of scheme ip comes through here.
func parseNetwork(id string) (netip.Prefix, bool) {
	text, bitsText, masked := strings.Cut(id, "/")
	address, ok := parseAddress(text)
	if !ok {
		return netip.Prefix{}, false
	}
	bits := address.BitLen()
	if masked {
		if bits, ok = parseDecimal(bitsText, bits); !ok {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(address, bits), true
}

// parseAddress reads what ZooKeeper takes for an address: four decimal bytes, or IPv6 groups without embedded IPv4 and
// without a scope. (netip.ParseAddr is both laxer and stricter, and allocates its errors.)
func parseAddress(text string) (netip.Addr, bool) {
	if strings.IndexByte(text, ':') >= 0 {
		return parseIPv6(text)
	}
	var raw [4]byte
	for i := range raw {
		part, rest, more := strings.Cut(text, ".")
		v, ok := parseDecimal(part, 255)
		if !ok || more != (i < 3) {
			return netip.Addr{}, false
		}
		raw[i] = byte(v)
		text = rest
	}
	return netip.AddrFrom4(raw), true
}

func parseIPv6(text string) (netip.Addr, bool) {
	var raw [16]byte
	head, tail, compressed := strings.Cut(text, "::")
	n, ok := parseGroups(head, &raw, 0)
	if !ok || !compressed && n != len(raw) {
		return netip.Addr{}, false
	}
	if compressed {
		// The groups behind "::" end at the address's end; "::" itself stands for at least one group of zeros.
		var low [16]byte
		m, ok := parseGroups(tail, &low, 0)
		if !ok || n+m > len(raw)-2 {
			return netip.Addr{}, false
		}
		copy(raw[len(raw)-m:], low[:m])
	}
	return netip.AddrFrom16(raw), true
}

// parseGroups reads groups of one to four hex digits between colons into raw from position n on and returns the
// position behind the last one. No text is no groups.
func parseGroups(text string, raw *[16]byte, n int) (int, bool) {
	for more := text != ""; more; n += 2 {
		var group string
		group, text, more = strings.Cut(text, ":")
		if len(group) == 0 || len(group) > 4 || n == len(raw) {
			return 0, false
		}
		var v uint16
		for i := 0; i < len(group); i++ {
			d, ok := hexDigit(group[i])
			if !ok {
				return 0, false
			}
			v = v<<4 | d
		}
		raw[n], raw[n+1] = byte(v>>8), byte(v)
	}
	return n, true
}

func hexDigit(c byte) (uint16, bool) {
	switch {
	case c >= '0' && c <= '9':
		return uint16(c - '0'), true
	case c >= 'a' && c <= 'f':
		return uint16(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return uint16(c-'A') + 10, true
	}
	return 0, false
}

// parseDecimal reads a number from 0 to max as Java does: a sign may stand in front, so that "-0" is one.
func parseDecimal(text string, max int) (int, bool) {
	v := 0
	switch {
	case strings.HasPrefix(text, "+"):
		text = text[1:]
	case strings.HasPrefix(text, "-"):
		text, max = text[1:], 0
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + int(c-'0'); v > max {
			return 0, false
		}
	}
	return v, text != ""
}
