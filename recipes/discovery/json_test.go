package discovery

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

type payload struct {
	Val string `json:"val"`
}

// javaText is what Curator 5.9 writes for the instance of TestJSONAsJava with a bean of the class "Payload".
const javaText = `{"name":"svc","id":"i1","address":"10.0.0.1","port":8080,"sslPort":8443,` +
	`"payload":{"@class":"Payload","val":"x"},"registrationTimeUTC":1700000000123,"serviceType":"DYNAMIC",` +
	`"uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true}]}}`

// javaBareText is what it writes for one with nothing but a name and an id.
const javaBareText = `{"name":"svc","id":"i2","address":null,"port":null,"sslPort":null,"payload":null,` +
	`"registrationTimeUTC":0,"serviceType":"PERMANENT","uriSpec":null}`

func TestJSONAsJava(t *testing.T) {
	spec, err := ParseURISpec("{scheme}://{address}")
	require.NoError(t, err)
	i := Instance[payload]{
		Name: "svc", ID: "i1", Address: "10.0.0.1", Port: 8080, SSLPort: 8443, Payload: payload{"x"},
		Registered: time.UnixMilli(1700000000123), URISpec: spec,
	}
	data, err := encode(i, "Payload")
	require.NoError(t, err)
	require.Equal(t, javaText, string(data))
	back, err := decode[payload](data, "i1", &zk.Stat{Czxid: 7})
	require.NoError(t, err)
	i.node, i.czxid = "i1", 7
	require.Equal(t, i, back)

	bare := Instance[None]{Name: "svc", ID: "i2", Registered: time.UnixMilli(0), Type: Permanent}
	data, err = encode(bare, "Payload")
	require.NoError(t, err)
	require.Equal(t, javaBareText, string(data))
}

func TestJSONEnabled(t *testing.T) {
	i := Instance[None]{Name: "svc", ID: "1", Disabled: true}
	data, err := encode(i, "")
	require.NoError(t, err)
	require.Contains(t, string(data), `"enabled":false`)
	for text, disabled := range map[string]bool{`"enabled":false,`: true, `"enabled":true,`: false, `"enabled":null,`: false, ``: false} {
		back, err := decode[None]([]byte(`{`+text+`"name":"svc","id":"1","future":[1,{}]}`), "1", &zk.Stat{})
		require.NoError(t, err)
		require.Equal(t, disabled, back.Disabled, text)
	}
}

func TestPayloads(t *testing.T) {
	decodeRaw := func(text string) json.RawMessage {
		i, err := decode[json.RawMessage]([]byte(`{"name":"a","id":"b","payload":`+text+`}`), "b", &zk.Stat{})
		require.NoError(t, err)
		return i.Payload
	}
	require.Nil(t, decodeRaw(`null`))
	require.JSONEq(t, `["java.lang.Long",5]`, string(decodeRaw(`["java.lang.Long",5]`)))
	i := Instance[json.RawMessage]{Name: "a", ID: "b", Payload: decodeRaw(`{"@class":"Theirs","x":1}`)}
	data, err := encode(i, "Ours")
	require.NoError(t, err)
	require.Contains(t, string(data), `"payload":{"@class":"Theirs","x":1}`)

	for text, want := range map[string]string{`"text"`: `"text"`, `{}`: `{"@class":"Ours"}`, `{"a":1}`: `{"@class":"Ours","a":1}`, `7`: `7`} {
		data, err := encode(Instance[json.RawMessage]{Name: "a", ID: "b", Payload: json.RawMessage(text)}, "Ours")
		require.NoError(t, err)
		require.Contains(t, string(data), `"payload":`+want+`,`)
	}
	none, err := decode[None]([]byte(`{"name":"a","id":"b","payload":"whatever"}`), "b", &zk.Stat{})
	require.NoError(t, err)
	require.Equal(t, None{}, none.Payload)
}

func TestMalformed(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       ``,
		"not JSON":      `127.0.0.1`,
		"another shape": `[1,2]`,
		"no id":         `{"name":"a"}`,
		"no name":       `{"id":"a"}`,
		"a text port":   `{"name":"a","id":"b","port":"http"}`,
		"a large port":  `{"name":"a","id":"b","port":65536}`,
		"unknown type":  `{"name":"a","id":"b","serviceType":"EPHEMERAL"}`,
		"payload":       `{"name":"a","id":"b","payload":"text"}`,
		"uri spec":      `{"name":"a","id":"b","uriSpec":{"parts":7}}`,
		"many parts":    `{"name":"a","id":"b","uriSpec":{"parts":[` + strings.Repeat(`{},`, uriPartsMax) + `{}]}}`,
		"size":          `{"name":"a","id":"b","address":"` + strings.Repeat("x", instanceBytesMax) + `"}`,
	} {
		_, err := decode[payload]([]byte(text), "b", &zk.Stat{})
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func TestEncodeRefuses(t *testing.T) {
	_, err := encode(Instance[string]{Name: "a", ID: "b", Payload: strings.Repeat("x", instanceBytesMax)}, "")
	require.ErrorContains(t, err, "at most")
	_, err = encode(Instance[any]{Name: "a", ID: "b", Payload: make(chan int)}, "")
	require.ErrorContains(t, err, "payload of b")
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(javaText))
	f.Add([]byte(javaBareText))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := decode[json.RawMessage](data, "n", &zk.Stat{})
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := encode(i, "")
		if err != nil {
			return // it has grown beyond the bound
		}
		back, err := decode[json.RawMessage](again, "n", &zk.Stat{})
		require.NoError(t, err)
		require.Equal(t, i.ID, back.ID)
	})
}

func TestURISpec(t *testing.T) {
	i := Instance[None]{Name: "svc", ID: "i", Address: "host", Port: 80, Registered: time.UnixMilli(5)}
	for text, want := range map[string]string{
		"{scheme}://{address}:{port}/{ name }?{id}":       "http://host:80/svc?i",
		"{[}{x}{]}{unknown}":                              "{mine}",
		"{service-type}{ssl-port}{registration-time-utc}": "dynamic5",
		"":     "",
		"{}":   "",
		"text": "text",
	} {
		spec, err := ParseURISpec(text)
		require.NoError(t, err, text)
		i.URISpec = spec
		require.Equal(t, want, i.URI(map[string]string{"x": "mine"}), text)
	}
	for _, text := range []string{"{", "}", "a}b", "{a{b}}", "{a", "a{b}}"} {
		_, err := ParseURISpec(text)
		require.Error(t, err, text)
	}
	i.URISpec, i.SSLPort = &URISpec{Parts: []URIPart{{"scheme", true}}}, 443
	require.Equal(t, "https", i.URI(nil))
	require.Equal(t, "{scheme}", i.URISpec.String())
	i.URISpec = nil
	require.Empty(t, i.URI(nil))
	empty, err := json.Marshal(&URISpec{})
	require.NoError(t, err)
	require.Equal(t, `{"parts":[]}`, string(empty))
}

func TestInstanceChecks(t *testing.T) {
	for name, i := range map[string]Instance[None]{
		"no name":     {},
		"slash":       {Name: "a/b"},
		"dots":        {Name: ".."},
		"control":     {Name: "a\x01"},
		"long id":     {Name: "a", ID: strings.Repeat("x", nameBytesMax+1)},
		"port":        {Name: "a", Port: -1},
		"ssl port":    {Name: "a", SSLPort: portMax + 1},
		"type":        {Name: "a", Type: 9},
		"invalid UTF": {Name: "a\xff"},
	} {
		require.Error(t, i.complete(time.Now()), name)
	}
	i := Instance[None]{Name: "a"}
	require.NoError(t, i.complete(time.UnixMilli(9)))
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, i.ID)
	require.Equal(t, time.UnixMilli(9), i.Registered)
	require.Equal(t, "ServiceType(9)", ServiceType(9).String())
}
