//go:build interop && linux

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// probe is a shell command with which a chart, an operator or a container asks whether a server is well. $PORT is the client
// port and $ADMIN that of the admin server.
type probe struct {
	name, script string
	// serving and alone are the exit codes that it has to have, of a server that serves and of a member without a quorum.
	serving, alone int
}

var probes = []probe{
	{"Bitnami chart, live and ready", `echo "ruok" | timeout 2 nc -w 2 localhost $PORT | grep imok`, 0, 0},
	{"Bitnami chart with useAdmin, live", `curl -s -m 2 http://localhost:$ADMIN/commands/ruok | grep ruok`, 0, 0},
	{"Bitnami chart with useAdmin, ready", `curl -s -m 2 http://localhost:$ADMIN/commands/ruok | grep error | grep null`, 0, 1},
	{"Kubernetes tutorial's zookeeper-ready", `OK=$(echo ruok | nc 127.0.0.1 $PORT); [ "$OK" == "imok" ]`, 0, 0},
	{"incubator chart's zkOk.sh", `OK=$(echo ruok | nc 127.0.0.1 $PORT); if [ "$OK" == "imok" ]; then exit 0; else exit 1; fi`, 0, 0},
	{"Strimzi-like health check", `OK=$(echo ruok | nc localhost $PORT); [[ "$OK" == "imok" ]]`, 0, 0},
	{"Pravega's operator, live", `set -e; OK=$(echo ruok | socat stdio tcp:localhost:$PORT); [[ "$OK" == "imok" ]]`, 0, 0},
	{"Pravega's operator, before it ends: nobody from elsewhere", `[ $(echo cons | nc localhost $PORT | grep -v "^$" | grep -v "/127.0.0.1:" | wc -l) -eq 0 ]`, 0, 1},
	{"Pulsar's chart", `[ "$(echo ruok | nc -q 1 localhost $PORT)" == "imok" ]`, 0, 0},
	{"Confluent's image", `echo ruok | nc -w 3 127.0.0.1 $PORT >/dev/null 2>&1 || exit 1`, 0, 0},
	{"official image with srvr", `echo srvr | timeout 10 nc -w 2 localhost $PORT | grep Zookeeper`, 0, 1},
	{"leader labels, srvr", `echo srvr | nc localhost $PORT | grep Mode`, 0, 1},
	{"leader labels, mntr", `echo mntr | nc localhost $PORT | grep zk_server_state`, 0, 1},
	{"health scripts that look at stat", `[[ "$(echo stat | nc localhost $PORT | head -1)" =~ "Zookeeper version" ]]`, 0, 1},
	{"a port check", `nc -z localhost $PORT`, 0, 0},
	{"HTTP on the client port by mistake: an empty answer", `curl -s -m 2 http://localhost:$PORT/`, 52, 52},
	{"the answer ends cleanly, every time", `for i in $(seq 50); do [ "$(echo ruok | nc localhost $PORT || echo reset)" == "imok" ] || exit 1; done`, 0, 0},
	{"Zabbix by HTTP", `curl -sf -m 2 http://localhost:$ADMIN/commands/monitor | grep -q '"num_alive_connections" : [0-9]'`, 0, 1},
	{"Zabbix by HTTP, the version", `curl -sf -m 2 http://localhost:$ADMIN/commands/srvr | grep -q '"version" : "3\.'`, 0, 1},
}

// nc and socat stand in where these are not installed: what the caller says is sent, and the answer read until it ends.
const ncScript = `#!/usr/bin/env bash
zero=
while [[ ${1-} == -* ]]; do
  case $1 in
    -w | -q) shift ;;
    -z) zero=1 ;;
  esac
  shift
done
exec 3<>"/dev/tcp/$1/$2" || exit 1
[[ $zero ]] && exit 0
cat >&3
cat <&3
`

const socatScript = `#!/usr/bin/env bash
IFS=: read -r _ host port <<<"$2"
exec nc "$host" "$port"
`

// probePath returns a PATH on which all tools are.
func probePath(t *testing.T) string {
	for _, tool := range []string{"bash", "curl", "grep", "timeout", "wc", "seq"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "the probes need it")
	}
	dir := t.TempDir()
	for tool, script := range map[string]string{"nc": ncScript, "socat": socatScript} {
		if _, err := exec.LookPath(tool); err != nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o755))
		}
	}
	return dir + ":" + os.Getenv("PATH")
}

// adminSettings are those of an admin server on a port of its own.
func adminSettings(t *testing.T) (settings map[string]string, port int) {
	port, err := harness.FreePort()
	require.NoError(t, err)
	return map[string]string{"admin.enableServer": "true", "admin.serverAddress": "127.0.0.1", "admin.serverPort": fmt.Sprint(port)}, port
}

// TestProbes runs the probes against a standalone server, a member that leads or follows, and a member without a quorum.
func TestProbes(t *testing.T) {
	path := probePath(t)
	settings, admin := adminSettings(t)
	standalone := startServer(t, serverUnderTest(t), settings)
	awaitAdmin(t, admin)
	e, err := harness.NewEnsemble(t.TempDir(), harness.Plan{Kind: serverUnderTest(t), Servers: 3})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	var admins []int
	for _, m := range e.Members {
		settings, port := adminSettings(t)
		require.NoError(t, m.Set(settings))
		admins = append(admins, port)
	}
	require.NoError(t, e.Start())
	for _, port := range admins {
		awaitAdmin(t, port)
	}
	for _, p := range probes {
		t.Run(p.name, func(t *testing.T) {
			p.run(t, path, standalone.Port, admin, p.serving)
			p.run(t, path, e.Members[0].Port, admins[0], p.serving)
		})
	}
	for _, m := range e.Members[1:] {
		require.NoError(t, m.Stop())
	}
	require.NoError(t, harness.Wait(waitTimeout, "the member left over stops serving", func() bool { return e.Members[0].Mode() == "" }))
	for _, p := range probes {
		t.Run("without a quorum/"+p.name, func(t *testing.T) { p.run(t, path, e.Members[0].Port, admins[0], p.alone) })
	}
}

// awaitAdmin waits for the admin server, which starts beside the client port.
func awaitAdmin(t *testing.T, port int) {
	t.Helper()
	require.NoError(t, harness.Wait(waitTimeout, "the admin server answers", func() bool {
		return exec.Command("curl", "-s", "-m", "2", fmt.Sprintf("http://127.0.0.1:%d/commands/ruok", port)).Run() == nil
	}))
}

func (p probe) run(t *testing.T, path string, port, admin, want int) {
	t.Helper()
	cmd := exec.Command("bash", "-c", p.script)
	cmd.Env = append(os.Environ(), "PATH="+path, fmt.Sprint("PORT=", port), fmt.Sprint("ADMIN=", admin))
	began := time.Now()
	out, _ := cmd.CombinedOutput() // its exit code is what is looked at
	require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s\nprinted, in %v:\n%s", p.script, time.Since(began), out)
}
