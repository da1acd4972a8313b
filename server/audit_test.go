package server_test

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"zabra/conf"
	"zabra/server"
	"zabra/wire"
)

// auditedConfig is a configuration with an audit log in a file of its own.
func auditedConfig(t *testing.T, format string) (cfg *conf.Config, file string) {
	file = filepath.Join(t.TempDir(), "audit.log")
	return shellConfig(t, func(cfg *conf.Config) { cfg.Audit = conf.Audit{Enabled: true, Format: format, File: file} }), file
}

// auditLines reads an audit log, without the times.
func auditLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	head := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} `)
	for line := range strings.Lines(string(text)) {
		require.Regexp(t, head, line)
		lines = append(lines, strings.TrimSuffix(head.ReplaceAllString(line, ""), "\n"))
	}
	return lines
}

func processOwner(t *testing.T) string {
	u, err := user.Current()
	require.NoError(t, err)
	return u.Username
}

// TestAuditLog: the lines are ZooKeeper's, from the start to the stop, and no name of a node or of a user makes fields.
func TestAuditLog(t *testing.T) {
	cfg, file := auditedConfig(t, conf.AuditText)
	s := startShell(t, cfg)
	c, session := s.session()
	id := session.SessionID.String()
	c.send(createFrame(1, "/a", nil))
	c.reply(1, wire.CodeOK)
	c.send(requestFrame(-4, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("u,root\tresult=success:p")}))
	c.reply(-4, wire.CodeOK)
	acl := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}, {Perms: wire.PermRead | wire.PermDelete | wire.PermCreate, Scheme: "world", ID: "anyone"}}
	c.send(requestFrame(2, wire.OpSetACL, &wire.SetACLRequest{Path: []byte("/a"), ACL: acl, Version: -1}))
	c.reply(2, wire.CodeOK)
	c.send(createFrame(3, "/none/x\ty\\\"z\n\u00a0\u0085é", nil))
	c.reply(3, wire.CodeNoNode)
	c.send(requestFrame(4, wire.OpCreate2, &wire.CreateRequest{Path: []byte("/e"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral}))
	c.reply(4, wire.CodeOK)
	c.send(requestFrame(5, wire.OpCloseSession, nil))
	c.reply(5, wire.CodeOK)
	s.shutdown()

	const logger = "audit.Slf4jAuditLogger: "
	owner := processOwner(t)
	who := "session=" + id + "\tuser=127.0.0.1"
	named := `,u\\,root\tresult=success`
	require.Equal(t, []string{
		"INFO " + logger + "user=" + owner + "\toperation=serverStart\tresult=success",
		"INFO " + logger + who + "\tip=127.0.0.1\toperation=create\tznode=/a\tznode_type=persistent\tresult=success",
		"INFO " + logger + who + named + "\tip=127.0.0.1\toperation=setAcl\tznode=/a\tacl=digest:u,root\\tresult=success:x:cdrwa,world:anyone:cdr\tresult=success",
		"ERROR " + logger + who + named + "\tip=127.0.0.1\toperation=create\tznode=/none/x\\ty\\\\\"z\\n\\u00a0\\u0085é\tznode_type=persistent\tresult=failure",
		"INFO " + logger + who + named + "\tip=127.0.0.1\toperation=create\tznode=/e\tznode_type=ephemeral\tresult=success",
		"INFO " + logger + "session=" + id + "\tuser=" + owner + "\toperation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=/e\tresult=success",
		"INFO " + logger + "user=" + owner + "\toperation=serverStop\tresult=invoked",
	}, auditLines(t, file))
}

// TestAuditLogAsJSON: the same fields, as an object a line.
func TestAuditLogAsJSON(t *testing.T) {
	cfg, file := auditedConfig(t, conf.AuditJSON)
	s := startShell(t, cfg)
	c, session := s.session()
	c.send(createFrame(1, "/a\"b", nil))
	c.reply(1, wire.CodeOK)
	require.NoError(t, s.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var operations []string
	for line := range strings.Lines(string(text)) {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		require.NotEmpty(t, fields["time"])
		operations = append(operations, fields["operation"]+" "+fields["result"])
		if fields["operation"] == "create" {
			delete(fields, "time")
			require.Equal(t, map[string]string{"session": session.SessionID.String(), "user": "127.0.0.1", "ip": "127.0.0.1",
				"operation": "create", "znode": `/a"b`, "znode_type": "persistent", "result": "success"}, fields)
		}
	}
	require.Equal(t, []string{"serverStart success", "create success", "serverStop invoked"}, operations)
}

// TestAuditInTheLog: without a file of its own it goes to the server's log. It is off unless it is asked for.
func TestAuditInTheLog(t *testing.T) {
	for _, format := range []string{conf.AuditText, conf.AuditJSON, ""} {
		s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.Audit = conf.Audit{Enabled: format != "", Format: format} }))
		c, _ := s.session()
		c.send(createFrame(1, "/a", nil))
		c.reply(1, wire.CodeOK)
		require.NoError(t, s.Close())
		switch format {
		case conf.AuditText:
			require.Equal(t, 1, s.logs.FilterMessageSnippet("\tip=127.0.0.1\toperation=create\tznode=/a\t").Len())
		case conf.AuditJSON:
			require.Equal(t, 1, s.logs.FilterMessage("audit").FilterField(zap.String("znode", "/a")).Len())
		default:
			require.Zero(t, s.logs.FilterMessageSnippet("operation=").Len())
			require.Zero(t, s.logs.FilterMessage("audit").Len())
		}
	}
}

// TestAuditOfAFailedStart: it is told, and a server that cannot write its audit log does not start.
func TestAuditOfAFailedStart(t *testing.T) {
	cfg, file := auditedConfig(t, conf.AuditText)
	first := startShell(t, shellConfig(t))
	cfg.DataDir = first.cfg.DataDir
	_, err := server.New(cfg, server.Options{})
	require.Error(t, err)
	lines := auditLines(t, file)
	require.Len(t, lines, 1)
	require.Equal(t, "ERROR audit.Slf4jAuditLogger: user="+processOwner(t)+"\toperation=serverStart\tresult=failure", lines[0])

	cfg, _ = auditedConfig(t, conf.AuditText)
	cfg.Audit.File = filepath.Join(t.TempDir(), "missing", "audit.log")
	_, err = server.New(cfg, server.Options{})
	var start *server.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, server.StageConfig, start.Stage)
	require.ErrorContains(t, err, "give zabra.audit.file a path that can be written")
}

// TestReconfigureAudit: it is switched on and off while clients are served, its file is opened anew, and one that cannot be
// opened changes nothing.
func TestReconfigureAudit(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c, _ := s.session()
	xid := int32(0)
	write := func(path string) {
		t.Helper()
		xid++
		c.send(createFrame(xid, path, nil))
		c.reply(xid, wire.CodeOK)
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	on := func(cfg *conf.Config) { cfg.Audit = conf.Audit{Enabled: true, Format: conf.AuditText, File: file} }
	has := func(file, path string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "znode="+path+"\t")
	}
	write("/before")
	taken, needRestart := s.reconfigure(on)
	require.Equal(t, []string{"audit.enable", "zabra.audit.file"}, taken)
	require.Empty(t, needRestart)
	write("/on")
	until(t, "the first line", func() bool { return has(file, "/on") })
	require.NoError(t, os.Rename(file, file+".moved"))
	s.reconfigure(on)
	write("/anew")
	until(t, "a line in the new file", func() bool { return has(file, "/anew") })

	taken, _ = s.reconfigure(func(cfg *conf.Config) {
		on(cfg)
		cfg.Audit.File = filepath.Join(t.TempDir(), "missing", "audit.log")
	})
	require.Empty(t, taken)
	require.Equal(t, 1, s.logs.FilterMessage("the audit log stays as it is").Len())
	write("/still")
	until(t, "a line after the mistake", func() bool { return has(file, "/still") })
	taken, _ = s.reconfigure(func(*conf.Config) {})
	require.Equal(t, []string{"audit.enable", "zabra.audit.file"}, taken)
	write("/after")
	require.NoError(t, s.Close())
	for _, path := range []string{"/before", "/after"} {
		require.False(t, has(file, path) || has(file+".moved", path), path)
	}
	require.True(t, has(file+".moved", "/on"))
}
