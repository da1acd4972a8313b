package admin

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/netip"
	"net/url"
)

// Request is a command as it came by HTTP.
type Request struct {
	Method string
	Query  url.Values
	Header http.Header
	// Body is what a POST carries. Whoever reads it bounds it.
	Body io.Reader
	// Remote is who asks, by the connection.
	Remote netip.AddrPort
	// TLS is nil for a plain connection.
	TLS *tls.ConnectionState
}

// Response is a command's answer in its HTTP form. The zero value is success without fields.
type Response struct {
	// Status is the HTTP status; 0 is 200. Most errors of commands are a 200 with Error set, as in ZooKeeper.
	Status int
	// Header is added to that of the response.
	Header http.Header
	// Fields come before the fields command and error in the object that is the body.
	Fields Object
	// Error is what the field error says; "" is null.
	Error string
	// Stream, if it is there, is the body in place of the object, as application/octet-stream. It is closed by whoever
	// sends it.
	Stream io.ReadCloser
	// StreamBytes is the length of Stream, -1 if it is not known.
	StreamBytes int64
}

// Object is a JSON object whose fields keep their order.
type Object []Field

// Field is one field of an object. Value is nil, a bool, a string, an int, int32, int64, uint64 or float64, an Object, or a
// slice of any of these ([]any, []string, []int64, []Object).
type Field struct {
	Name  string
	Value any
}

// FromThisMachine reports whether who asks is on the machine of the server, and neither a page of another site in a browser
// there nor somebody behind a proxy that says so.
func (r *Request) FromThisMachine() bool {
	for _, name := range []string{"Origin", "X-Forwarded-For", "Forwarded"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return r.Remote.Addr().IsLoopback()
}
