package server

import (
	"time"

	"go.uber.org/zap"

	"zabra/conf"
)

// Reconfigure takes from cfg, a valid configuration, what can change while the server runs: the limits on connections, requests
// and new sessions, the timeout of connections without a session, the four-letter words, the users who may log in, what counts as a
// slow sync, when snapshots are due and purges, how many snapshots those leave, whether quotas are enforced, and the audit log, whose
// file is opened anew in any case. Certificates are looked at, too, whether or not they are in other files now: those that are
// configured are read again. Sessions and connections that are there stay, also above a lower limit. taken is what has changed,
// needRestart what differs from the configuration in force and is left as it is. The level of the log is among taken; it belongs
// to whoever made the log. One goroutine at a time may call it, and any may serve meanwhile.
func (s *Server) Reconfigure(cfg *conf.Config) (taken, needRestart []conf.Change) {
	running := s.live.Load()
	cfg, taken, needRestart = s.reconfigureAudit(running, cfg)
	s.live.Store(cfg)
	s.conns.limit(cfg)
	s.replica.SetLimits(limitsOf(cfg))
	s.sessions.configure(s.clock.now().MonoMs, cfg.Throttle.Sessions)
	s.store.SetSyncWarn(syncWarn(cfg))
	s.reloadCerts(true, true)
	s.store.SetSnapshotLimits(cfg.SnapCount, cfg.SnapSizeLimitKB<<10)
	s.purging.tell()
	return taken, needRestart
}

// reconfigureAudit takes up the settings of the audit log and all others. If its file cannot be opened, the audit log stays as
// it is: it must not end because of a typing error.
func (s *Server) reconfigureAudit(running, cfg *conf.Config) (now *conf.Config, taken, needRestart []conf.Change) {
	if err := s.audit.configure(conf.Take(running, cfg)); err != nil {
		s.log.Error("the audit log stays as it is", zap.Error(err))
		kept := *cfg
		kept.Audit = running.Audit
		cfg = &kept
	}
	taken, needRestart = conf.Reload(running, cfg)
	now = conf.Take(running, cfg)
	on := now.Audit.Enabled
	s.post(func() { s.replica.SetAudit(on) })
	return now, taken, needRestart
}

func syncWarn(cfg *conf.Config) time.Duration {
	return time.Duration(cfg.FsyncWarningThresholdMs) * time.Millisecond
}
