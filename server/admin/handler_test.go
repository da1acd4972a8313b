package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

// ask sends a request to the handler of src.
func ask(t testing.TB, src Source, method, target string, extra ...HTTPCommand) *http.Response {
	t.Helper()
	return askWith(t, src, HandlerOptions{}, method, target, extra...)
}

func askWith(t testing.TB, src Source, opts HandlerOptions, method, target string, extra ...HTTPCommand) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(src, extra, opts).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w.Result()
}

func bodyOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

// get is the body of a command's answer.
func get(t testing.TB, src Source, command string) string {
	t.Helper()
	resp := ask(t, src, http.MethodGet, "/commands/"+command)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, []string{"application/json"}, resp.Header["Content-Type"])
	return bodyOf(t, resp)
}

func TestRouting(t *testing.T) {
	const unknown = "{\n  \"command\" : \"%\",\n  \"error\" : \"Unknown command: %\"\n}"
	ruok := "{\n  \"command\" : \"ruok\",\n  \"error\" : null\n}"
	srvr := func(text string) bool {
		return strings.Contains(text, "\n  \"command\" : \"server_stats\",\n  \"error\" : null\n}")
	}
	is := func(want string) func(string) bool { return func(text string) bool { return text == want } }
	typed := func(name string) func(string) bool { return is(strings.ReplaceAll(unknown, "%", name)) }
	page := func(text string) bool {
		return strings.HasPrefix(text, "<html>") && strings.Contains(text, "HTTP ERROR ")
	}
	const jsonType, htmlType = "application/json", "text/html;charset=iso-8859-1"
	tests := []struct {
		name, method, target string
		status               int
		contentType          string
		body                 func(string) bool
		allow                string
	}{
		{"command", "GET", "/commands/ruok", 200, jsonType, is(ruok), ""},
		{"parameters", "GET", "/commands/ruok?a=b&%zz&;", 200, jsonType, is(ruok), ""},
		{"alias", "GET", "/commands/srvr", 200, jsonType, srvr, ""},
		{"primary name", "GET", "/commands/server_stats", 200, jsonType, srvr, ""},
		{"escaped name", "GET", "/commands/r%75ok", 200, jsonType, is(ruok), ""},
		{"names have one case", "GET", "/commands/RUOK", 200, jsonType, typed("RUOK"), ""},
		{"unknown", "GET", "/commands/nope", 200, jsonType, typed("nope"), ""},
		{"unknown with a slash", "GET", "/commands/ruok/", 200, jsonType, typed("ruok/"), ""},
		{"unknown by POST", "POST", "/commands/nope", 200, jsonType, typed("nope"), ""},
		{"unknown name that must be escaped", "GET", "/commands/%22%0A%3Cb%3E", 200, jsonType, typed(`\"\n<b>`), ""},
		{"HEAD", "HEAD", "/commands/ruok", 200, jsonType, is(""), ""},
		{"POST of a GET", "POST", "/commands/ruok", 405, jsonType, is("{\n  \"command\" : \"ruok\",\n  \"error\" : \"ruok is a GET\"\n}"), "GET, HEAD, OPTIONS"},
		{"GET of a POST", "GET", "/commands/doit", 405, jsonType, is("{\n  \"command\" : \"doit\",\n  \"error\" : \"doit changes something: it is a POST\"\n}"), "POST, OPTIONS"},
		{"HEAD of a POST", "HEAD", "/commands/doit", 405, jsonType, is(""), "POST, OPTIONS"},
		{"POST", "POST", "/commands/doit", 200, jsonType, is("{\n  \"did\" : true,\n  \"command\" : \"doit\",\n  \"error\" : null\n}"), ""},
		{"PUT", "PUT", "/commands/ruok", 405, "", is(""), ""},
		{"DELETE", "DELETE", "/commands/nope", 405, "", is(""), ""},
		{"strange method", "FOO", "/commands/ruok", 405, "", is(""), ""},
		{"TRACE", "TRACE", "/commands/ruok", 403, "", is(""), ""},
		{"TRACE elsewhere", "TRACE", "/", 403, "", is(""), ""},
		{"OPTIONS", "OPTIONS", "/commands/ruok", 200, "", is(""), "GET, HEAD, POST, TRACE, OPTIONS"},
		{"POST of the list", "POST", "/commands", 405, "", is(""), ""},
		{"root", "GET", "/", 404, htmlType, page, ""},
		{"other", "GET", "/commandsx", 404, htmlType, page, ""},
		{"other by PUT", "PUT", "/x", 404, htmlType, page, ""},
		{"live", "GET", "/livez", 200, "text/plain; charset=utf-8", is("ok\n"), ""},
		{"ready", "GET", "/readyz", 200, "text/plain; charset=utf-8", is("ok\n"), ""},
		{"ready by HEAD", "HEAD", "/readyz", 200, "text/plain; charset=utf-8", is(""), ""},
		{"ready by POST", "POST", "/readyz", 405, "", is(""), ""},
	}
	doit := HTTPCommand{Name: "doit", Post: true, Run: func(Source, *Request) *Response { return shown("did", true) }}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := ask(t, &fake{}, tt.method, tt.target, doit)
			require.Equal(t, tt.status, resp.StatusCode)
			require.Equal(t, tt.contentType, resp.Header.Get("Content-Type"))
			require.Equal(t, tt.allow, resp.Header.Get("Allow"))
			text := bodyOf(t, resp)
			require.True(t, tt.body(text), "%q", text)
		})
	}
}

func TestCommandURL(t *testing.T) {
	for url, path := range map[string]string{"": "/commands/ruok", "/": "/ruok", "/zk": "/zk/ruok", "zk/": "/zk/ruok", "/a/b": "/a/b/ruok"} {
		resp := askWith(t, &fake{}, HandlerOptions{CommandURL: url}, "GET", path)
		require.Contains(t, bodyOf(t, resp), `"command" : "ruok"`, url)
		resp = askWith(t, &fake{}, HandlerOptions{CommandURL: url}, "GET", strings.TrimSuffix(path, "ruok"))
		require.Contains(t, bodyOf(t, resp), `<a href="`+path+`">ruok</a>`, url)
	}
}

func TestListOfCommands(t *testing.T) {
	resp := ask(t, &fake{}, "GET", "/commands", HTTPCommand{Name: "snapshot", Aliases: []string{"snap"}})
	require.Equal(t, 200, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Content-Type"))
	want := ""
	for _, name := range strings.Fields(`configuration connection_stat_reset connections dirs dump environment get_trace_mask hash
		initial_configuration is_read_only last_snapshot leader monitor observer_connection_stat_reset observers ruok server_stats
		set_trace_mask snapshot stat_reset stats system_properties voting_view watch_summary watches watches_by_path zabstate`) {
		want += `<a href="/commands/` + name + `">` + name + "</a>\n<br/>\n"
	}
	require.Equal(t, want, bodyOf(t, resp))
	require.Equal(t, want, bodyOf(t, ask(t, &fake{}, "GET", "/commands/", HTTPCommand{Name: "snapshot"})))
}

// Every name that runbooks and charts use leads to its command.
func TestAliases(t *testing.T) {
	for alias, name := range map[string]string{
		"conf": "configuration", "config": "configuration", "cons": "connections", "stat": "stats", "srvr": "server_stats", "env": "environment",
		"envi": "environment", "gtmk": "get_trace_mask", "stmk": "set_trace_mask", "icfg": "initial_configuration", "isro": "is_read_only",
		"lsnp": "last_snapshot", "lead": "leader", "mntr": "monitor", "obsr": "observers", "sysp": "system_properties", "wchs": "watch_summary",
		"wchc": "watches", "wchp": "watches_by_path", "crst": "connection_stat_reset", "srst": "stat_reset", "orst": "observer_connection_stat_reset",
	} {
		require.Contains(t, get(t, &fake{}, alias), `"command" : "`+name+`"`)
	}
	require.Panics(t, func() { Handler(&fake{}, []HTTPCommand{{Name: "x", Aliases: []string{"mntr"}}}, HandlerOptions{}) })
	for i := range httpCommands {
		require.NotEmpty(t, httpCommands[i].Purpose, httpCommands[i].Name)
	}
}

func TestNotServing(t *testing.T) {
	src := &fake{down: true}
	works := strings.Fields("environment env envi get_trace_mask gtmk set_trace_mask stmk system_properties sysp zabstate")
	for i := range httpCommands {
		for _, name := range append(httpCommands[i].Aliases, httpCommands[i].Name) {
			want := "{\n  \"command\" : \"" + name + "\",\n  \"error\" : \"This ZooKeeper instance is not currently serving requests\"\n}"
			text := get(t, src, name)
			for _, w := range works {
				if w == name {
					want = text
					require.NotContains(t, text, "serving")
				}
			}
			require.Equal(t, want, text)
		}
	}
	require.Zero(t, src.crst+src.srst+src.http.orst)
	require.Contains(t, bodyOf(t, ask(t, src, "POST", "/commands/doit", HTTPCommand{Name: "doit", Post: true})), notServing)
	resp := ask(t, src, "POST", "/commands/ruok")
	require.Equal(t, 200, resp.StatusCode, "that it is a GET is told when it can be run")
	require.Contains(t, bodyOf(t, resp), notServing)
}

// Bitnami's readiness probe runs grep error | grep null over an answer, its liveness probe grep ruok.
func TestProbesThatGrep(t *testing.T) {
	grep := func(text, word string) (lines string) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, word) {
				lines += line
			}
		}
		return lines
	}
	up, down := get(t, &fake{}, "ruok"), get(t, &fake{down: true}, "ruok")
	require.NotEmpty(t, grep(grep(up, "error"), "null"))
	require.Empty(t, grep(grep(down, "error"), "null"))
	require.NotEmpty(t, grep(up, "ruok"))
	require.NotEmpty(t, grep(down, "ruok"))
}

func TestProbes(t *testing.T) {
	opts := HandlerOptions{
		Alive: func() (bool, string) { return false, "failed" },
		Ready: func() (bool, string) { return false, "election" },
	}
	for path, want := range map[string]string{"/livez": "failed\n", "/readyz": "election\n"} {
		resp := askWith(t, &fake{}, opts, "GET", path)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Equal(t, want, bodyOf(t, resp))
	}
}

// A defect in a command costs its caller one answer, and is told.
func TestDefectsStayInside(t *testing.T) {
	var told []any
	opts := HandlerOptions{Panicked: func(command string, value any, stack []byte) {
		require.Contains(t, string(stack), "InitialConfiguration")
		told = append(told, command, value)
	}}
	src := &fake{http: fakeHTTP{defect: true, defectValue: "oops"}}
	resp := askWith(t, src, opts, "GET", "/commands/icfg")
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	require.Equal(t, "{\n  \"command\" : \"icfg\",\n  \"error\" : \"a defect in the server, which its log describes\"\n}", bodyOf(t, resp))
	require.Equal(t, []any{"icfg", "oops"}, told)
	require.Equal(t, http.StatusInternalServerError, ask(t, src, "GET", "/commands/icfg").StatusCode)
	// A field of a kind that there is not, too.
	resp = ask(t, src, "GET", "/commands/bad", HTTPCommand{Name: "bad", Run: func(Source, *Request) *Response { return shown("x", 'x') }})
	require.Equal(t, 200, resp.StatusCode, "a rune is an int32")
	resp = ask(t, src, "GET", "/commands/bad", HTTPCommand{Name: "bad", Run: func(Source, *Request) *Response { return shown("x", []byte{1}) }})
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
}

// What a command gets, and what becomes of its answer.
func TestRequestAndResponse(t *testing.T) {
	var got Request
	var sent string
	cmd := HTTPCommand{Name: "c", Post: true, Run: func(_ Source, r *Request) *Response {
		got = *r
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		sent = string(b)
		return &Response{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Fields: Object{{"a", 1}}}
	}}
	r := httptest.NewRequest("POST", "/commands/c?a=1&b=%20x&a=2", strings.NewReader("body"))
	r.Header.Set("Authorization", "digest u:p")
	r.RemoteAddr = "[::ffff:10.0.0.7]:4711"
	w := httptest.NewRecorder()
	Handler(&fake{}, []HTTPCommand{cmd}, HandlerOptions{StallTime: 1}).ServeHTTP(w, r)
	require.Equal(t, url.Values{"a": {"1", "2"}, "b": {" x"}}, got.Query)
	require.Equal(t, "POST", got.Method)
	require.Equal(t, "digest u:p", got.Header.Get("Authorization"))
	require.Equal(t, "10.0.0.7:4711", got.Remote.String())
	require.Nil(t, got.TLS)
	require.Equal(t, "body", sent)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "7", w.Header().Get("Retry-After"))
	require.Equal(t, "{\n  \"a\" : 1,\n  \"command\" : \"c\",\n  \"error\" : null\n}", w.Body.String())
	require.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
}

// slowFake takes its time to list its connections.
type slowFake struct {
	*fake
	asked, resume chan struct{}
}

func (f *slowFake) Connections() []Connection {
	f.asked <- struct{}{}
	<-f.resume
	return nil
}

// Few large answers are made at a time. Small ones do not wait for them, and who goes away does not wait either.
func TestLargeAnswersWait(t *testing.T) {
	src := &slowFake{fake: &fake{}, asked: make(chan struct{}), resume: make(chan struct{})}
	h := Handler(src, nil, HandlerOptions{})
	serve := func(ctx context.Context, path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/commands/"+path, nil))
		return w.Body.String()
	}
	answers := make(chan string)
	for range largeAnswersMax {
		go func() { answers <- serve(t.Context(), "cons") }()
		<-src.asked
	}
	require.Contains(t, serve(t.Context(), "ruok"), `"error" : null`)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Empty(t, serve(gone, "stat"))
	go func() { answers <- serve(t.Context(), "stat") }()
	src.resume <- struct{}{} // one is through, so that the next can begin
	require.Contains(t, <-answers, `"connections" : [ ]`)
	<-src.asked
	for range largeAnswersMax {
		src.resume <- struct{}{}
		require.Contains(t, <-answers, `"connections" : [ ]`)
	}
}

// closer notes that it was closed.
type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

func TestStreams(t *testing.T) {
	long := strings.Repeat("0123456789", streamChunkBytes/4)
	stream := &closer{Reader: strings.NewReader(long)}
	resp := &Response{Stream: stream, StreamBytes: int64(len(long)), Header: http.Header{"last_zxid": {"0x5"}}}
	cmd := HTTPCommand{Name: "c", Run: func(Source, *Request) *Response { return resp }}
	answer := ask(t, &fake{}, "GET", "/commands/c", cmd)
	require.Equal(t, long, bodyOf(t, answer))
	require.Equal(t, "application/octet-stream", answer.Header.Get("Content-Type"))
	require.EqualValues(t, len(long), answer.ContentLength)
	require.Equal(t, []string{"0x5"}, answer.Header["last_zxid"])
	require.True(t, stream.closed)

	stream = &closer{Reader: strings.NewReader(long)}
	resp = &Response{Stream: stream, StreamBytes: -1}
	require.Empty(t, bodyOf(t, ask(t, &fake{}, "HEAD", "/commands/c", cmd)))
	require.True(t, stream.closed)

	// A stream that breaks does not look like one that has ended.
	stream = &closer{Reader: io.MultiReader(strings.NewReader("part"), iotest.ErrReader(errors.New("disk")))}
	resp = &Response{Stream: stream, StreamBytes: -1}
	server := httptest.NewServer(Handler(&fake{}, []HTTPCommand{cmd}, HandlerOptions{StallTime: 1 << 40}))
	defer server.Close()
	whole, err := http.Get(server.URL + "/commands/c")
	if err == nil {
		defer whole.Body.Close()
		_, err = io.ReadAll(whole.Body)
	}
	require.Error(t, err)
	server.Close() // after this nothing of the request is under way
	require.True(t, stream.closed)
}

// Over TLS browsers are told to stay with it.
func TestTransportSecurity(t *testing.T) {
	require.Empty(t, ask(t, &fake{}, "GET", "/commands/ruok").Header.Get("Strict-Transport-Security"))
	require.Equal(t, "max-age=86400; includeSubDomains",
		ask(t, &fake{}, "GET", "https://h/commands/ruok").Header.Get("Strict-Transport-Security"))
}

func TestFromThisMachine(t *testing.T) {
	for remote, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.2]:1": true, "10.0.0.1:1": false, "nonsense": false} {
		var got bool
		cmd := HTTPCommand{Name: "c", Run: func(_ Source, r *Request) *Response { got = r.FromThisMachine(); return &Response{} }}
		r := httptest.NewRequest("GET", "/commands/c", nil)
		r.RemoteAddr = remote
		Handler(&fake{}, []HTTPCommand{cmd}, HandlerOptions{}).ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, want, got, remote)
		r.Header.Set("Origin", "http://elsewhere")
		Handler(&fake{}, []HTTPCommand{cmd}, HandlerOptions{}).ServeHTTP(httptest.NewRecorder(), r)
		require.False(t, got, "a page in a browser on this machine is not this machine")
	}
}

// FuzzRequest: whatever comes in gets an answer, and commands answer in JSON.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"/commands/ruok", "/commands/stmk?traceMask=1", "/commands/%22", "/", "/commands//", "/livez?x", "/commands/a\xff\x00?%"} {
		f.Add("GET", seed)
	}
	f.Add("POST", "/commands/mntr")
	f.Add("OPTIONS", "/commands/mntr")
	src := &fake{metrics: Metrics{Version: "v\"", Gauges: []Sample{{Name: "a", Value: Int(1)}}}, bySession: []SessionPaths{{zxid.SessionID(1), []string{"/\xff"}}}}
	h := Handler(src, nil, HandlerOptions{Panicked: func(_ string, value any, _ []byte) { panic(value) }})
	f.Fuzz(func(t *testing.T, method, target string) {
		path, query, _ := strings.Cut(target, "?")
		r := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, Body: http.NoBody}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("Content-Type") == "application/json" && method != http.MethodHead {
			require.True(t, json.Valid(w.Body.Bytes()), "%q", w.Body.String())
			require.Equal(t, 1, bytes.Count(w.Body.Bytes(), []byte("\n  \"command\" : ")))
		}
		require.Contains(t, []int{200, 403, 404, 405}, w.Code)
	})
}

// A client that announces a body and does not send it does not keep its connection.
func TestBodiesThatDoNotCome(t *testing.T) {
	server := httptest.NewServer(Handler(&fake{}, nil, HandlerOptions{StallTime: 50 * time.Millisecond}))
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(c, "POST /commands/ruok HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(c)
	var netErr net.Error
	require.False(t, errors.As(err, &netErr) && netErr.Timeout(), "the server waits for ever")
}
