package admin

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HandlerOptions are what [Handler] needs beside the server and the commands. The zero value works.
type HandlerOptions struct {
	// CommandURL is the path before the name of a command; empty for /commands. A slash at its end does not count.
	CommandURL string
	// Alive and Ready answer the probes /livez and /readyz: whether all is well, and if not, why, in one word. Nil is yes.
	Alive, Ready func() (ok bool, why string)
	// StallTime is how long the other side may take nothing of an answer or send nothing of a body; 0 is without bound. It
	// works on connections only, not on recorded ones.
	StallTime time.Duration
	// Panicked hears of a defect in a command. The request was answered with status 500.
	Panicked func(command string, value any, stack []byte)
}

// What the paths of commands allow: all commands together, those that are asked for, and those that do something.
const (
	allowAll  = "GET, HEAD, POST, TRACE, OPTIONS"
	allowRead = "GET, HEAD, OPTIONS"
	allowPost = "POST, OPTIONS"
)

// Handler answers the requests to the admin server of src: its own commands and extra ones, the list of all commands, and
// two probes. No name may stand for two commands.
//
//	GET /commands         the list
//	GET /commands/NAME    a command, by its name or an alias
//	GET /livez            200 while the process is well, otherwise 503
//	GET /readyz           200 while the server serves clients, otherwise 503
func Handler(src Source, extra []HTTPCommand, opts HandlerOptions) http.Handler {
	h := &handler{src: src, opts: opts, commands: make(map[string]*HTTPCommand), large: make(chan struct{}, largeAnswersMax)}
	h.prefix = "/" + strings.Trim(opts.CommandURL, "/")
	if opts.CommandURL == "" {
		h.prefix = "/commands"
	}
	if h.prefix == "/" {
		h.prefix = ""
	}
	all := slices.Concat(httpCommands, extra)
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
		for _, name := range append([]string{all[i].Name}, all[i].Aliases...) {
			if h.commands[name] != nil {
				panic("admin: two commands are called " + name)
			}
			h.commands[name] = &all[i]
		}
	}
	slices.Sort(names)
	for _, name := range names {
		h.list += fmt.Sprintf("<a href=\"%s\">%s</a>\n<br/>\n", html.EscapeString(h.prefix+"/"+name), html.EscapeString(name))
	}
	return h
}

type handler struct {
	src      Source
	opts     HandlerOptions
	prefix   string // of commands, without the slash at the end
	commands map[string]*HTTPCommand
	list     string
	large    chan struct{} // holds one for each large answer that is under way
}

// isLarge knows the commands whose answers grow with the number of clients.
var isLarge = map[string]bool{"connections": true, "stats": true, "dump": true, "watches": true, "watches_by_path": true}

// exchange is one request with its answer.
type exchange struct {
	*handler
	w       http.ResponseWriter
	r       *http.Request
	command string // as typed
	begun   bool   // the answer is under way
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, w: w, r: r}
	defer x.recovered()
	if r.TLS != nil {
		w.Header().Set("Strict-Transport-Security", transportSecurity)
	}
	x.extend()
	if r.ContentLength != 0 { // there is more to come, which somebody will wait for whether the command reads it or not
		x.awaitBody(h.opts.StallTime)
	}
	if r.Method == http.MethodTrace {
		x.write(http.StatusForbidden, "", "")
		return
	}
	name, isCommand := strings.CutPrefix(r.URL.Path, h.prefix+"/")
	switch {
	case r.URL.Path == "/livez":
		x.probe(h.opts.Alive)
	case r.URL.Path == "/readyz":
		x.probe(h.opts.Ready)
	case r.URL.Path == h.prefix, isCommand && name == "":
		x.links()
	case isCommand:
		x.command = name
		x.dispatch()
	default:
		x.notFound()
	}
}

// recovered answers for a command that has panicked: that is our own defect, and costs nobody more than this answer.
func (x *exchange) recovered() {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler {
		panic(value) // the connection is cut, as was meant
	}
	if x.opts.Panicked != nil {
		x.opts.Panicked(x.command, value, debug.Stack())
	}
	if x.begun {
		panic(http.ErrAbortHandler)
	}
	x.answer(x.command, &Response{Status: http.StatusInternalServerError, Error: "a defect in the server, which its log describes"})
}

// extend gives the other side its time anew. A recorded exchange has no clock.
func (x *exchange) extend() {
	if x.opts.StallTime > 0 {
		_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.opts.StallTime))
	}
}

// awaitBody bounds the time until the next part of the body; 0 is without bound.
func (x *exchange) awaitBody(limit time.Duration) {
	until := time.Time{}
	if limit > 0 {
		until = time.Now().Add(limit)
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(until)
}

// allowed answers a request by a method that is not meant here, and reports whether it is.
func (x *exchange) allowed(allow string) bool {
	if x.r.Method != http.MethodOptions && slices.Contains(strings.Split(allow, ", "), x.r.Method) {
		return true
	}
	status := http.StatusMethodNotAllowed
	if x.r.Method == http.MethodOptions {
		x.w.Header().Set("Allow", allow)
		status = http.StatusOK
	}
	x.write(status, "", "")
	return false
}

// dispatch runs the command that was asked for.
func (x *exchange) dispatch() {
	if !x.allowed(allowAll) {
		return
	}
	cmd := x.commands[x.command]
	if cmd == nil {
		x.typed("Unknown command: " + x.command)
		return
	}
	if cmd.Down != Work && !x.src.Serving() {
		x.typed(notServing)
		return
	}
	if post := x.r.Method == http.MethodPost; post != cmd.Post {
		x.wrongMethod(cmd)
		return
	}
	if isLarge[cmd.Name] {
		select {
		case x.large <- struct{}{}:
			defer func() { <-x.large }()
		case <-x.r.Context().Done():
			return
		}
	}
	x.run(cmd)
}

// run runs a command that may be run now.
func (x *exchange) run(cmd *HTTPCommand) {
	remote, _ := netip.ParseAddrPort(x.r.RemoteAddr)
	resp := cmd.Run(x.src, &Request{
		Method: x.r.Method, Query: x.r.URL.Query(), Header: x.r.Header, Body: &body{x: x}, TLS: x.r.TLS,
		Remote: netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()),
	})
	x.extend() // the command may have taken its time
	if resp.Stream != nil {
		x.stream(resp)
		return
	}
	x.answer(cmd.Name, resp)
}

// typed answers for what is not run, with the name as it was typed in front of the error.
func (x *exchange) typed(failure string) {
	x.write(statusOK, "application/json", string(appendObject(nil, Object{{"command", x.command}, {"error", failure}}, 0)))
}

func (x *exchange) wrongMethod(cmd *HTTPCommand) {
	allow, failure := allowRead, cmd.Name+" is a GET"
	if cmd.Post {
		allow, failure = allowPost, cmd.Name+" changes something: it is a POST"
	}
	x.w.Header().Set("Allow", allow)
	x.answer(cmd.Name, &Response{Status: http.StatusMethodNotAllowed, Error: failure})
}

// answer sends what a command has to say.
func (x *exchange) answer(name string, resp *Response) {
	text := appendDocument(nil, name, resp)
	x.add(resp.Header)
	x.write(resp.status(), "application/json", string(text))
}

func (x *exchange) add(header http.Header) {
	for name, values := range header {
		x.w.Header()[name] = append(x.w.Header()[name], values...)
	}
}

// write sends a whole answer. No type is told if contentType is empty.
func (x *exchange) write(status int, contentType, text string) {
	x.w.Header()["Content-Type"] = nil
	if contentType != "" {
		x.w.Header().Set("Content-Type", contentType)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	x.begin(status)
	if x.r.Method != http.MethodHead {
		_, _ = io.WriteString(x.w, text) // who does not take it needs no second answer
	}
}

func (x *exchange) begin(status int) {
	x.begun = true
	x.w.WriteHeader(status)
}

// stream sends a stream, at the pace at which it is taken. If it breaks, so does the connection, so that nobody takes a
// part for the whole.
func (x *exchange) stream(resp *Response) {
	defer resp.Stream.Close()
	x.add(resp.Header)
	x.w.Header().Set("Content-Type", "application/octet-stream")
	if resp.StreamBytes >= 0 {
		x.w.Header().Set("Content-Length", strconv.FormatInt(resp.StreamBytes, 10))
	}
	x.begin(resp.status())
	if x.r.Method == http.MethodHead {
		return
	}
	buf := make([]byte, streamChunkBytes)
	for {
		n, err := resp.Stream.Read(buf)
		x.extend()
		if _, writeErr := x.w.Write(buf[:n]); writeErr != nil || err != nil && !errors.Is(err, io.EOF) {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			return
		}
	}
}

// links lists the commands.
func (x *exchange) links() {
	if x.allowed(allowRead) {
		x.write(statusOK, "", x.list)
	}
}

// probe answers a probe in one word.
func (x *exchange) probe(ask func() (ok bool, why string)) {
	if !x.allowed(allowRead) {
		return
	}
	ok, why := true, ""
	if ask != nil {
		ok, why = ask()
	}
	x.w.Header().Set("Cache-Control", "no-store")
	if ok {
		x.write(statusOK, "text/plain; charset=utf-8", "ok\n")
		return
	}
	x.write(http.StatusServiceUnavailable, "text/plain; charset=utf-8", why+"\n")
}

// notFound is what a browser shows of a request that leads nowhere.
func (x *exchange) notFound() {
	x.write(http.StatusNotFound, "text/html;charset=iso-8859-1", "<html><head><title>Error 404 Not Found</title></head><body><h2>HTTP ERROR 404 Not Found</h2></body></html>\n")
}

// body is the body of a request. Whoever sends it has to go on sending.
type body struct{ x *exchange }

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	b.x.awaitBody(b.x.opts.StallTime)
	n, err := b.x.r.Body.Read(p)
	if err != nil {
		b.x.awaitBody(0) // from here on it is only watched whether the other side is still there
	}
	return n, err
}
