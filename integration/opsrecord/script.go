package opsrecord

import (
	"fmt"
	"strings"
)

// The sessions of the conversation, by index. In an ensemble each is connected to another member.
const (
	First  = iota // to the standalone server, or the leader
	Second        // to a follower
	Third         // to an observer
	sessions
)

// timeoutsMs are what the sessions ask for, in ms: longer than all questions take, since nobody pings.
var timeoutsMs = [sessions]int32{500000, 400000, 400000}

// Settings are the keys of zoo.cfg that the conversation and the questions need; those of a port are not among them.
func Settings() map[string]string {
	return map[string]string{
		"tickTime": "500", "maxSessionTimeout": "600000", "maxClientCnxns": "60", "4lw.commands.whitelist": "*", "initLimit": "10", "syncLimit": "5",
	}
}

// step is one request and the code that answers it.
type step struct {
	who  int
	op   int32
	body []byte
	code int32
}

// digestsAt is after how many transactions a server keeps a digest of the tree.
const digestsAt = 128

// steps is the conversation, after the sessions are opened.
func steps() []step {
	list := []step{
		{First, opCreate, create("/app", "hello", "world", "anyone", 0), codeOK},
		{First, opCreate, create("/app/config", "x=1", "world", "anyone", 0), codeOK},
		{First, opCreate, create("/app", "", "world", "anyone", 0), codeNodeExists},
		{First, opCreate, create("/zookeeper/quota/app", "", "world", "anyone", 0), codeOK},
		{First, opCreate, create("/zookeeper/quota/app/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=10000;countHardLimit=100", "world", "anyone", 0), codeOK},
		{First, opCreate, create("/zookeeper/quota/app/zookeeper_stats", "count=0,bytes=0", "world", "anyone", 0), codeOK},
		{First, opAuth, auth("digest", "user:secret"), codeOK},
		{First, opCreate, create("/private", "hidden", "auth", "", 0), codeOK},
		{First, opCreate, create("/many", "", "world", "anyone", 0), codeOK},
	}
	for i := range digestsAt {
		list = append(list, step{First, opSetData, set("/many", strings.Repeat("m", i%10)), codeOK})
	}
	return append(list, []step{
		{Second, opSync, appendText(nil, "/"), codeOK},
		{Third, opSync, appendText(nil, "/"), codeOK},
		{Second, opGetData, read("/private", false), codeNoAuth},
		{First, opCreate, create("/app/e-first", "1", "world", "anyone", flagEphemeral), codeOK},
		{Second, opCreate, create("/app/e-second", "2", "world", "anyone", flagEphemeral), codeOK},
		{Second, opCreate, create("/app/lock-", "", "world", "anyone", flagEphemeral|flagSequential), codeOK},
		{Third, opSync, appendText(nil, "/"), codeOK},
		{First, opGetData, read("/app", true), codeOK},
		{First, opGetData, read("/app/config", true), codeOK},
		{First, opExists, read("/app/none", true), codeNoNode},
		{Second, opGetData, read("/app", true), codeOK},
		{Second, opGetChildren, read("/app", true), codeOK},
		{Second, opAddWatch, addWatch("/app/config", watchPersistent), codeOK},
		{Third, opAddWatch, addWatch("/app", watchRecursive), codeOK},
		{First, opSetData, set("/app/config", "x=2"), codeOK}, // the first three are told
		{Second, opSync, appendText(nil, "/"), codeOK},
		{Third, opSync, appendText(nil, "/"), codeOK},
		{Third, opGetData, read("/app/config", false), codeOK},
		{Second, opGetChildren2, read("/app", false), codeOK},
		{First, opExists, read("/app/config", false), codeOK},
	}...)
}

// Scene is a server, or an ensemble, after the conversation. The sessions are connected until it is closed.
type Scene struct {
	open [sessions]*session
}

// Play has the conversation: the sessions connect to the addresses in order, to the last one if there are fewer.
func Play(addrs ...string) (*Scene, error) {
	sc := &Scene{}
	for i := range sc.open {
		s, err := open(addrs[min(i, len(addrs)-1)], timeoutsMs[i])
		if err != nil {
			sc.Close()
			return nil, err
		}
		sc.open[i] = s
	}
	for i, st := range steps() {
		code, err := sc.open[st.who].call(st.op, st.body)
		if err == nil && code != st.code {
			err = fmt.Errorf("code %d instead of %d", code, st.code)
		}
		if err != nil {
			sc.Close()
			return nil, fmt.Errorf("step %d of the conversation, operation %d: %w", i+1, st.op, err)
		}
	}
	return sc, nil
}

// Sessions are the ids of the sessions, in order.
func (sc *Scene) Sessions() []int64 {
	ids := make([]int64, sessions)
	for i, s := range sc.open {
		ids[i] = s.id
	}
	return ids
}

// Close cuts the connections. The sessions live on until they expire.
func (sc *Scene) Close() {
	for _, s := range sc.open {
		if s != nil {
			s.conn.Close()
		}
	}
}
