package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"zabra/server/admin"
	"zabra/zab"
)

// runHandOver has a leader leave the lead to another member, and stay in the ensemble as a follower. Clients see what they
// see at every change of the leader: connections are cut, sessions go on.
func (s *Server) runHandOver(r *admin.Request) *admin.Response {
	m := s.member
	if m == nil {
		return refusedAction(http.StatusConflict, "a standalone server has nobody to hand over to")
	}
	if r.Query.Has("to") {
		return refusedAction(http.StatusBadRequest, "the next leader cannot be chosen: the members elect the one with the longest log, and of equals the one with the highest id")
	}
	st := m.status.Load()
	switch {
	case st.Role != zab.RoleLeading && st.HasLeader:
		return refusedAction(http.StatusConflict, fmt.Sprintf("this server does not lead; ask the leader, server %d", st.Leader))
	case st.Role != zab.RoleLeading || !st.Serving:
		return refusedAction(http.StatusConflict, "this server does not lead")
	case st.LevelVoters == 0:
		return refusedAction(http.StatusConflict, "no follower with a vote is level with this server; wait until one is (zk_synced_followers of mntr)")
	}
	s.log.Info("this server is asked to hand over the leadership", zap.Stringer("remote", r.Remote))
	return m.leaveLead(st)
}

// leaveLead asks the core to step down and waits for what comes of it.
func (m *member) leaveLead(led *zab.Status) *admin.Response {
	began := time.Now()
	m.input(zab.Input{Kind: zab.InputHandOver})
	limited, cancel := context.WithTimeout(m.ctx, handOverTime)
	defer cancel()
	if !m.await(limited, func(st *zab.Status) bool { return st.Generation != led.Generation }) {
		return refusedAction(http.StatusConflict, "no follower has all that this server has at the moment; try again")
	}
	awaited, cancel := context.WithTimeout(m.ctx, handOverAwaitTime)
	defer cancel()
	if !m.await(awaited, func(st *zab.Status) bool { return st.Generation != led.Generation && st.Serving }) {
		return refusedAction(http.StatusGatewayTimeout, "this server has given up the leadership, and none of the members leads yet; look at their logs")
	}
	st := m.status.Load()
	if st.Leader == m.id {
		return refusedAction(http.StatusConflict, "no other member took over, so that this server leads again")
	}
	return &admin.Response{Fields: admin.Object{
		{Name: "old_leader", Value: int64(m.id)},
		{Name: "new_leader", Value: int64(st.Leader)},
		{Name: "took_ms", Value: time.Since(began).Milliseconds()},
	}}
}
