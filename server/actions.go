package server

import (
	"net/http"
	"sync"
	"sync/atomic"

	"zabra/server/admin"
)

// actions is what the commands that do something need to remember: snapshot, backup, restore, handover and top.
type actions struct {
	snapshotRate, restoreRate rateLimit
	// backingUp is set while a backup is sent, restoring while a snapshot is received and put in the state's place, and
	// maintenance while nobody is served because of that.
	backingUp, restoring, maintenance atomic.Bool
	top                               top

	mu       sync.Mutex
	restored chan struct{} // closed when the state was replaced; nil while nobody waits for that
}

// actionCommands are the commands of the admin server that do more than show and count. All ask for all permissions on the
// root node. Those that ZooKeeper does not have are more careful: as long as everybody has these permissions, they are for who
// asks from the server's own machine.
func (s *Server) actionCommands() []admin.HTTPCommand {
	authorized := func(run func(*admin.Request) *admin.Response) func(admin.Source, *admin.Request) *admin.Response {
		return func(_ admin.Source, r *admin.Request) *admin.Response {
			if refused := s.unauthorized(r); refused != nil {
				return refused
			}
			return run(r)
		}
	}
	guarded := func(run func(*admin.Request) *admin.Response) func(admin.Source, *admin.Request) *admin.Response {
		return func(_ admin.Source, r *admin.Request) *admin.Response {
			if refused := s.unproven(r); refused != nil {
				return refused
			}
			return run(r)
		}
	}
	return []admin.HTTPCommand{
		{
			Name: "snapshot", Aliases: []string{"snap"}, Run: authorized(s.runSnapshot),
			Purpose: "take a snapshot and send it, or with streaming=false leave it on the server",
		},
		{Name: "backup", Run: guarded(s.runBackup), Purpose: "send the state of this moment; compress=gzip makes it smaller"},
		{Name: "restore", Aliases: []string{"rest"}, Post: true, Run: authorized(s.runRestore), Purpose: "put a snapshot in the place of the state"},
		{Name: "handover", Post: true, Run: guarded(s.runHandOver), Purpose: "the leader leaves the lead to another member"},
		{
			Name: "top", Run: guarded(s.runTop),
			Purpose: "busiest clients and paths, widest watches, biggest nodes; n=20, reset=true",
		},
	}
}

// refusedAction is the answer of a command that is not carried out.
func refusedAction(status int, why string) *admin.Response {
	return &admin.Response{Status: status, Error: why}
}

// flag reads a parameter that is true or false.
func flag(r *admin.Request, name string, usual bool) (value, ok bool) {
	switch r.Query.Get(name) {
	case "":
		return usual, true
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return usual, false
}

// needsZxid refuses what makes no sense with snapshots that do not say which transaction they end at.
func (s *Server) needsZxid() *admin.Response {
	if s.snapshotOptions().LastZxid {
		return nil
	}
	return refusedAction(http.StatusInternalServerError,
		"snapshots of this server do not say which transaction they end at; set digest.enabled and serializeLastProcessedZxid.enabled to true and restart")
}

// awaitRestored returns what is closed when the state has been replaced.
func (a *actions) awaitRestored() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restored = make(chan struct{})
	return a.restored
}

// tellRestored belongs to the stepping goroutine.
func (a *actions) tellRestored() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.restored != nil {
		close(a.restored)
		a.restored = nil
	}
}
