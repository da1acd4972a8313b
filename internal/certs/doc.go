// Package certs makes TLS configurations of ZooKeeper's key and trust stores, and keeps them fresh while a server runs.
//
// The way through it: OpenClient and OpenQuorum read the stores of one set of keys ("ssl." or "ssl.quorum.") and check all of
// it, Set.Server and Set.Client give the configuration of one side, Set.Reload takes up files that have changed. ReadStore
// reads a single store for whoever needs no set.
//
// Stores are files in PEM, JKS or PKCS12. As in Java the type goes by the name of the file unless it is given. BCFKS is
// refused.
//
// Names. Where they are checked, a certificate has to be good for the address that was connected to or that the connection
// comes from, or else for the name that was dialled, or else, if allowReverseDnsLookup is set and there is no name, for one that
// the address has. That holds in fips-mode, too, where ZooKeeper silently leaves it out between servers.
package certs
