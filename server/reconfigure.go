package server

import (
	"time"

	"zabra/conf"
)

// Reconfigure takes from cfg, a valid configuration, what can change while the server runs: the limits on connections, the
// timeout of those without a session, the four-letter words, the users who may log in, what counts as a slow sync, and how many
// snapshots a purge leaves. Sessions and connections that are there stay, also above a lower limit. taken is what has changed, needRestart
// what differs from the configuration in force and is left as it is. Certificates are looked at, too, whether or not they are
// in other files now: those that are configured are read again. The level of the log is among taken; it belongs to
// whoever made the log. One goroutine at a time may call it, and any may serve meanwhile.
func (s *Server) Reconfigure(cfg *conf.Config) (taken, needRestart []conf.Change) {
	running := s.live.Load()
	taken, needRestart = conf.Reload(running, cfg)
	cfg = conf.Take(running, cfg)
	s.live.Store(cfg)
	s.conns.limit(cfg)
	s.store.SetSyncWarn(syncWarn(cfg))
	s.reloadCerts(true, true)
	return taken, needRestart
}

func syncWarn(cfg *conf.Config) time.Duration {
	return time.Duration(cfg.FsyncWarningThresholdMs) * time.Millisecond
}
