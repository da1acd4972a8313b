package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// nameCheck finds out whether a certificate is that of whoever is at the other end.
type nameCheck struct {
	prefix string
	// reverse allows looking up the names of an address.
	reverse bool
	// lookupAddr and lookupHost ask the name service.
	lookupAddr func(ctx context.Context, addr string) ([]string, error)
	lookupHost func(ctx context.Context, host string) ([]string, error)
}

func newNameCheck(prefix string, reverse bool) *nameCheck {
	return &nameCheck{prefix: prefix, reverse: reverse, lookupAddr: net.DefaultResolver.LookupAddr, lookupHost: net.DefaultResolver.LookupHost}
}

// verify wants the certificate to be good for the address of the other end, or for the name it was dialled by, or for one that
// the name service has for the address. host is empty where this side was dialled.
func (n *nameCheck) verify(c *x509.Certificate, host string, remote net.Addr) error {
	addr := addrOf(remote)
	if addr.IsValid() && matches(c, addr.String()) {
		return nil
	}
	host = strings.TrimSuffix(host, ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	named := host != "" && err != nil
	if host != "" && matches(c, host) {
		return nil
	}
	if !named && n.reverse && addr.IsValid() {
		for _, name := range n.namesOf(addr) {
			if matches(c, name) {
				return nil
			}
		}
	}
	whom := host
	if !named {
		whom = addr.String()
	}
	return fmt.Errorf("the certificate is for %s, not for %s: use one with that name or address, or set %shostnameVerification=false",
		namesIn(c), whom, n.prefix)
}

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// namesOf looks up the names of an address. Only those count that lead back to it: whoever rules over the names of his addresses
// can give them any name.
func (n *nameCheck) namesOf(addr netip.Addr) (names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	found, err := n.lookupAddr(ctx, addr.String())
	if err != nil {
		return nil
	}
	for _, name := range found[:min(len(found), namesShownMax)] {
		name = strings.TrimSuffix(name, ".")
		back, err := n.lookupHost(ctx, name)
		if err == nil && slices.ContainsFunc(back, func(s string) bool {
			a, err := netip.ParseAddr(s)
			return err == nil && a.Unmap().WithZone("") == addr
		}) {
			names = append(names, name)
		}
	}
	return names
}

// matches tells whether the certificate is good for a name or address. The common name counts where there is no other name, as
// in Java; many a store in use was made without any.
func matches(c *x509.Certificate, host string) bool {
	if c.VerifyHostname(host) == nil {
		return true
	}
	if len(c.DNSNames)+len(c.IPAddresses) > 0 || c.Subject.CommonName == "" {
		return false
	}
	named := &x509.Certificate{DNSNames: []string{c.Subject.CommonName}}
	if ip := net.ParseIP(c.Subject.CommonName); ip != nil {
		named = &x509.Certificate{IPAddresses: []net.IP{ip}}
	}
	return named.VerifyHostname(host) == nil
}

// namesIn lists what a certificate is good for.
func namesIn(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return fmt.Sprintf("%.100q", c.Subject.CommonName)
	}
	more := ""
	if len(names) > namesShownMax {
		names, more = names[:namesShownMax], " and others"
	}
	return fmt.Sprintf("%.500s%s", strings.Join(names, ", "), more)
}
