package lab

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a board that keeps what it is shown. The functions are called on the goroutine of the run.
type recorder struct {
	mu    sync.Mutex
	rows  []Row
	said  []string
	ended *Summary
	onNow func(Now)
	onRow func(Row)
}

func (r *recorder) Begin(*Config) {}

func (r *recorder) Now(n Now) {
	if r.onNow != nil {
		r.onNow(n)
	}
}

func (r *recorder) Say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

func (r *recorder) Row(row Row) {
	r.mu.Lock()
	r.rows = append(r.rows, row)
	r.mu.Unlock()
	if r.onRow != nil {
		r.onRow(row)
	}
}

func (r *recorder) End(s *Summary) error {
	r.ended = s
	return nil
}

// patient is a session timeout that no busy machine exceeds.
const patient = 40 * time.Second

// startServer starts one that grants every session timeout of the tests, and looks often whether one is over.
func startServer(t *testing.T, opts ...servertest.Option) *servertest.Server {
	t.Helper()
	return servertest.Start(t, append([]servertest.Option{servertest.WithConfig("tickTime", "50"),
		servertest.WithConfig("minSessionTimeout", "100"), servertest.WithConfig("maxSessionTimeout", "60000")}, opts...)...)
}

// configFor is a quick run against the server.
func configFor(s *servertest.Server, mode Mode, waiters, rounds int) Config {
	c := Default()
	c.Mode, c.Waiters, c.Rounds, c.Hold, c.SessionTimeout = mode, waiters, rounds, 0, patient
	c.Server, c.Meter = s.Addr(), Mntr(s.Addr())
	return c
}

// runLab runs to the end and returns what was shown.
func runLab(t *testing.T, c Config) *recorder {
	t.Helper()
	r := &recorder{}
	_, err := Run(context.Background(), c, r)
	require.NoError(t, err)
	require.NotNil(t, r.ended)
	return r
}

// requireClean sees that nothing of the lab is left on the server.
func requireClean(t *testing.T, s *servertest.Server) {
	t.Helper()
	children, err := s.Client(t).GetChildren(t.Context(), "/", false)
	require.NoError(t, err)
	require.Equal(t, []string{"zookeeper"}, children)
}
