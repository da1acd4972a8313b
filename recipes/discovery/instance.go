package discovery

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Instance is one running server of a service. T is the type of its payload: anything that encoding/json can handle, None for
// no payload at all, json.RawMessage for whatever is there.
type Instance[T any] struct {
	// Name is that of the service; it is the name of a node and has no slash.
	Name string
	// ID tells the instances of a service apart. Register makes a random one if it is empty.
	ID string
	// Address is a host name or IP address; it may be empty, which Java reads as null.
	Address string
	// Port and SSLPort are 0 if there is none, which Java reads as null.
	Port    int
	SSLPort int
	Payload T
	// Registered is when the instance was registered, in milliseconds on the wire. Register takes the present time if it is zero.
	Registered time.Time
	Type       ServiceType
	// URISpec says how the address of the service is built; nil if nobody needs it.
	URISpec *URISpec
	// Disabled takes the instance out of what a Provider hands out. Java's ServiceProvider obeys it too.
	Disabled bool

	node  string
	czxid int64
}

// Node returns the name of the node an instance was read from, "" for one that was not read. It is the ID, unless the type
// is DynamicSequential.
func (i Instance[T]) Node() string { return i.node }

// URI builds the address by the URI spec, with the variables of the instance and those given, which come first. It is empty
// without a URI spec.
func (i Instance[T]) URI(variables map[string]string) string {
	if i.URISpec == nil {
		return ""
	}
	return i.URISpec.Build(i.variables(), variables)
}

// ServiceType says how long the node of an instance lives.
type ServiceType int

const (
	// Dynamic is the usual type: the node belongs to the session and ends with it.
	Dynamic ServiceType = iota
	// Static and Permanent make a node that stays until it is unregistered. To ZooKeeper they are the same.
	Static
	Permanent
	// DynamicSequential is Dynamic, but the server appends a number to the name, so that several instances may share an ID.
	// Curator never removes such a node before the session ends, because it looks for it without the number; this package does.
	DynamicSequential
)

var typeNames = [...]string{"DYNAMIC", "STATIC", "PERMANENT", "DYNAMIC_SEQUENTIAL"}

// String returns the type as it is written on the wire.
func (t ServiceType) String() string {
	if t < 0 || int(t) >= len(typeNames) {
		return fmt.Sprintf("ServiceType(%d)", int(t))
	}
	return typeNames[t]
}

func parseType(text string) (ServiceType, error) {
	for t, name := range typeNames {
		if name == text {
			return ServiceType(t), nil
		}
	}
	return 0, fmt.Errorf("unknown service type %.40q", text)
}

// ephemeral tells whether the node ends with the session.
func (t ServiceType) ephemeral() bool { return t == Dynamic || t == DynamicSequential }

// None is the payload of instances that have none. It is written as null, and whatever others have written is ignored.
type None struct{}

// MarshalJSON writes null.
func (None) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// UnmarshalJSON ignores what it is given.
func (*None) UnmarshalJSON([]byte) error { return nil }

var _ interface {
	json.Marshaler
	json.Unmarshaler
} = (*None)(nil)

// complete fills what may be left out, and refuses what cannot be registered.
func (i *Instance[T]) complete(now time.Time) error {
	if i.ID == "" {
		i.ID = randomID()
	}
	if i.Registered.IsZero() {
		i.Registered = now
	}
	if i.Type < Dynamic || i.Type > DynamicSequential {
		return fmt.Errorf("discovery: %v is not a service type", i.Type)
	}
	if i.Port < 0 || i.Port > portMax || i.SSLPort < 0 || i.SSLPort > portMax {
		return fmt.Errorf("discovery: ports %d and %d have to be within 0 and %d", i.Port, i.SSLPort, portMax)
	}
	if i.URISpec != nil && len(i.URISpec.Parts) > uriPartsMax {
		return fmt.Errorf("discovery: a URI spec of %d parts, at most %d", len(i.URISpec.Parts), uriPartsMax)
	}
	if err := checkName("service name", i.Name); err != nil {
		return err
	}
	return checkName("instance id", i.ID)
}

// checkName refuses what cannot be the name of a node.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("discovery: the %s is empty", what)
	case len(name) > nameBytesMax:
		return fmt.Errorf("discovery: the %s has %d bytes, at most %d", what, len(name), nameBytesMax)
	case name == "." || name == "..", !utf8.ValidString(name), strings.ContainsFunc(name, forbidden):
		return fmt.Errorf("discovery: %q cannot be a %s", name, what)
	}
	return nil
}

// forbidden are the slash, and the characters that ZooKeeper does not take in a path.
func forbidden(r rune) bool {
	return r == '/' || r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
}

// randomID makes a UUID of version 4, as Curator does.
func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var (
	// ErrNoInstance is returned if there is no such instance, or none that can be handed out.
	ErrNoInstance = errors.New("discovery: no instance")
	// ErrMalformed is returned for an instance that somebody wrote in a way that is not understood.
	ErrMalformed = errors.New("discovery: malformed instance")
	// ErrTaken is why a registration is not there: another session holds a node of the same name and id.
	ErrTaken = errors.New("discovery: the instance id is registered by somebody else")
	// ErrUnregistered is returned by a registration that was closed.
	ErrUnregistered = errors.New("discovery: unregistered")
)
