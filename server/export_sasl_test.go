package server

// AuthFailed counts the logins that were refused.
func (s *Server) AuthFailed() int64 { return s.meter.authFailed.Load() }
