package opsrecord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// answerLimit bounds the wait for one answer. A server that has just started may be slow with the first.
const answerLimit = 20 * time.Second

// answerBytesMax bounds an answer.
const answerBytesMax = 4 << 20

// again stands behind a question that is asked a second time, for what has changed.
const again = " again"

// Words are the four-letter words that change nothing; some with what a client may send behind, some that are none.
var Words = []string{
	"ruok", "ruok\n", "ruok\r\n", "ruoksrvr", "isro", "gtmk", "conf", "envi", "dirs", "srvr", "stat", "cons", "dump", "mntr", "wchs", "wchc", "wchp",
	"hash", "stmk", "stmk\x00\x00\x00\x00\x00\x00\x01\x32", "\xff\xf4\xff\xfd", "RUOK", "lsnp", "lead", "GET ",
}

// ResettingWords are those that reset counters, each with a look at what it has reset. They are asked last.
var ResettingWords = []string{"crst", "cons" + again, "srst", "srvr" + again}

// AskWords asks a server words. In the questions bytes that are no text are escaped.
func AskWords(addr string, words []string) ([]Answer, error) {
	list := make([]Answer, 0, len(words))
	for _, word := range words {
		text, err := askWord(addr, strings.TrimSuffix(word, again))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
		quoted := strconv.Quote(word)
		list = append(list, Answer{Question: quoted[1 : len(quoted)-1], Text: text})
	}
	return list, nil
}

// askWord sends a word and reads until the server closes the connection.
func askWord(addr, word string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, answerLimit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerLimit))
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, answerBytesMax))
	if errors.Is(err, syscall.ECONNRESET) { // what it did not read may be answered with a reset
		err = nil
	}
	return string(text), err
}

// primary are the commands of the admin server that only read, in the order in which they are asked, and aliases those of
// their other names that need not be asked of each kind of server.
var (
	primary = []string{
		"configuration", "connections", "dirs", "dump", "environment", "get_trace_mask", "hash", "initial_configuration", "is_read_only", "last_snapshot",
		"leader", "monitor", "observers", "ruok", "server_stats", "stats", "system_properties", "voting_view", "watch_summary", "watches", "watches_by_path", "zabstate",
	}
	aliases = []string{
		"conf", "config", "cons", "env", "envi", "gtmk", "icfg", "isro", "lead", "lsnp", "obsr", "srvr", "stat", "sysp", "wchc", "wchp", "wchs",
	}
)

// Requests are what is asked of the admin server, as method, blank and path. Nothing of it resets counters. The aliases are
// left out where brief is set.
func Requests(brief bool) []string {
	var list []string
	names := primary
	if !brief {
		names = slices.Concat(primary, aliases)
	}
	for _, name := range names {
		list = append(list, "GET /commands/"+name)
	}
	return append(list, "GET /commands/set_trace_mask", "GET /commands/set_trace_mask?traceMask=x", "GET /commands/set_trace_mask?traceMask=306",
		"GET /commands/stmk?traceMask=306", "GET /commands", "GET /commands/", "GET /", "GET /elsewhere", "GET /commands/nope", "GET /commands/RUOK",
		"GET /commands/ruok?unknown=1", "HEAD /commands/ruok", "POST /commands/ruok", "PUT /commands/ruok", "DELETE /commands/ruok", "OPTIONS /commands/ruok",
		"TRACE /commands/ruok", "GET /commands/snapshot", "GET /commands/snap", "GET /commands/restore", "POST /commands/restore", "POST /commands/rest",
		"POST /commands/snapshot")
}

// ResettingRequests reset counters, and look at what they have reset. They are asked last.
var ResettingRequests = []string{
	"GET /commands/connection_stat_reset", "GET /commands/crst", "GET /commands/connections" + again, "GET /commands/observer_connection_stat_reset",
	"GET /commands/orst", "GET /commands/stat_reset", "GET /commands/srst", "GET /commands/server_stats" + again,
}

// newClient makes an HTTP client that asks each request on a connection of its own.
func newClient() *http.Client {
	return &http.Client{Timeout: answerLimit, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
}

// Get asks one page.
func Get(url string) (Answer, error) { return askHTTP(newClient(), http.MethodGet, url) }

// AskHTTP asks an admin server, given as http://host:port, requests.
func AskHTTP(base string, requests []string) ([]Answer, error) {
	client := newClient()
	list := make([]Answer, 0, len(requests))
	for _, request := range requests {
		method, path, _ := strings.Cut(strings.TrimSuffix(request, again), " ")
		answer, err := askHTTP(client, method, base+path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", request, err)
		}
		answer.Question = request
		list = append(list, answer)
	}
	return list, nil
}

func askHTTP(client *http.Client, method, url string) (Answer, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	if err != nil {
		return Answer{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Allow: resp.Header.Get("Allow"), Text: string(body)}
	if strings.HasPrefix(a.Type, "text/html") || bytes.HasPrefix(body, []byte("<html>")) || method == http.MethodTrace {
		a.Text = "" // a page is for people: what it says is the HTTP library's own
	}
	return a, nil
}
